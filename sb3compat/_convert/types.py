"""The types of the package: aliases, and the protocols of the objects that it drives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import (
    AsyncVectorEnv,
    AutoresetMode,
    SyncVectorEnv,
    VectorEnv,
    VectorWrapper,
)

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Rewards = npt.NDArray[np.floating[Any]]
# The numbers of rows, as an index array.
Rows = npt.NDArray[np.intp]

# An element of a space: an array, a scalar, or a dict or tuple of them; of one row or of all.
Observation = Any
Action = Any

Info = dict[str, Any]
# The infos of a vector environment: a dict of arrays, with a mask for each.
VectorInfos = Mapping[str, Any]
Options = dict[str, Any]
# Options as users pass them: for all rows, or one for each row.
GivenOptions = Sequence[Options | None] | Options | None
# One for each row; None is for no options.
RowOptions = Sequence[Options | None]
Seeds = Sequence[int | None]
Indices = int | Iterable[int] | None
Kwargs = Mapping[str, Any]
# What `isinstance` takes: a class, or a tuple or union of them.
ClassInfo = Any
Function = Callable[..., Any]

Space = gym.Space[Any]
SingleEnv = gym.Env[Any, Any]
AnyVectorEnv = VectorEnv[Any, Any, Any]

if TYPE_CHECKING:
    AnySync = SyncVectorEnv[Any, Any]
    AnyAsync = AsyncVectorEnv[Any, Any]
    AnyWrapper = VectorWrapper[Any, Any, Any, Any, Any]
    VectorEnvBase = VectorEnv[Any, Any, Any]
else:
    # Not all are generic before Gymnasium 1.4, and a base class needs no parameters.
    AnySync, AnyAsync, AnyWrapper = SyncVectorEnv, AsyncVectorEnv, VectorWrapper
    VectorEnvBase = VectorEnv

# What a single environment returns.
ResetResult = tuple[Observation, Info]
StepResult = tuple[Observation, Any, bool, bool, Info]
# What a vector environment returns.
VectorResetResult = tuple[Observation, Info]
VectorStepResult = tuple[Observation, Any, Any, Any, Info]


class Transition(NamedTuple):
    """One step of all rows.

    Attributes:
        observations: One array of shape `(n, *leaf.shape)` for each leaf of the space.
        rewards: Floats of shape `(n,)`.
        ended: Which rows' episodes ended, bool of shape `(n,)`.
        truncated: Which of them were truncated and not terminated as well, bool of shape `(n,)`.
        infos: One dict for each row, with the keys of the API that receives them.
        reset_infos: The infos of the resets within the step, by row.
    """

    observations: list[Array]
    rewards: Rewards
    ended: Flags
    truncated: Flags
    infos: list[Info]
    reset_infos: dict[int, Info]


class Source(Protocol):
    """Steps and resets the rows, in this process or in workers, for the adapter to SB3."""

    @property
    def busy(self) -> bool:
        """Whether workers are in the middle of a step, and cannot run other commands.

        After an exception in `send`, False says that no row was or will be stepped, unless the
        source is broken.
        """

    @property
    def broken(self) -> bool:
        """Whether a worker is lost, so that a reset would not help."""

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""

    def check_options(self, options: Sequence[Options]) -> None:
        """Refuse options that the next reset could not apply."""

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""

    def send(self, actions: list[Array]) -> None:
        """Start a step."""

    def receive(self) -> Transition:
        """Finish the step."""

    def cancel(self) -> None:
        """Drop a step that was started."""

    def render(self) -> Any:
        """One frame for each row, or None."""

    def close(self) -> None:
        """Close the environment."""


class VecEnvLike(Protocol):
    """What every `VecEnv` has: SB3's own classes, and any object with the same methods.

    It also has `step`, or `step_async` and `step_wait`. It may have `seed`, `set_options`,
    `get_attr`, `set_attr`, `env_method` and `close`.
    """

    num_envs: int
    observation_space: Space
    action_space: Space

    def reset(self) -> Observation:
        """Reset all rows."""


class HoldsVectorEnv(Protocol):
    """A `VecEnv` made from a `VectorEnv`, which it returns for a round trip.

    The adapter to SB3 derives from it; `to_gymnasium` recognises the adapter by this protocol.
    """

    def original(self, autoreset_mode: AutoresetMode) -> AnyVectorEnv | None:
        """The vector environment, if it can be driven directly from now on in that mode."""


# A command to a sub-environment: its name and arguments, see `_rows/commands.py`.
Command = tuple[Any, ...]


class SubEnvs(Protocol):
    """Access to the sub-environments of some rows, in this process or in workers."""

    def ask(self, command: Command, rows: Sequence[int]) -> list[Any]:
        """The answer of each of these rows to a command, but for `step` and `reset`.

        Raises:
            AttributeError: If a row has no such attribute.
            Exception: What a row has raised, the first one if several have.
        """


class OwnVecEnv(Protocol):
    """A `VecEnv` of this package; `to_gymnasium` recognises it by this protocol."""

    # Another object after each reset and step.
    last_call: object

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""

    @property
    def largest_seed(self) -> int | None:
        """The largest seed of a row that the environment takes; None if it takes all."""

    def pass_options(self, options: Sequence[Options]) -> None:
        """Pass these dicts to the rows in the next reset, uncopied; `set_options` copies them."""

    def read(self, name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
        """An attribute of the sub-environments; called where it can be, as Gymnasium does."""


class RowState(Protocol):
    """The state of the rows of a `VecEnv` that was adapted to Gymnasium."""

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""

    def forget_options(self) -> None:
        """Discard the options that are set on the `VecEnv` for its next reset."""


class HoldsVecEnv(Protocol):
    """A `VectorEnv` made from a `VecEnv`, which it hands back for a round trip.

    Its `reset` respects `options["reset_mask"]` in every autoreset mode, and it returns new arrays.
    The adapter to Gymnasium derives from it; the way to SB3 knows the adapter by this protocol
    alone, and asks it for what it also has to know of Gymnasium's own classes.
    """

    vec_env: Any
    # Another object after each reset and step.
    last_call: object

    @property
    def subenvs(self) -> SubEnvs:
        """Reaches the sub-environments."""

    @property
    def row_state(self) -> RowState:
        """The state of its rows."""

    def reset_rows(
        self, rows: list[int] | None, seeds: Seeds, options: RowOptions
    ) -> VectorResetResult:
        """Reset some rows, or all (None); seeds and options are by row, for all of the n rows."""

    def settled(self) -> Any:
        """The `VecEnv`, in the state that it would have if it had been driven directly.

        None if it is in no such state, as a step was lost.
        """


class RowCommands(Protocol):
    """Sub-environments in workers, each of which runs the commands of `_rows/commands.py`."""

    @property
    def lost(self) -> bool:
        """Whether a worker is lost."""

    def ask(self, commands: Mapping[int, Command]) -> dict[int, Any]:
        """Give each row its command, then collect the results."""


class HoldsRows(Protocol):
    """A `VecEnv` of our own whose rows live in workers; the way to Gymnasium knows it by this.

    Attributes:
        shown_space: The space that contains the observations, as SB3's wrappers declare others.
    """

    shown_space: Space

    def row_commands(self) -> RowCommands | None:
        """Steps rows one by one; None if there are parts of several rows."""


def holds_vector_env(value: object) -> TypeGuard[HoldsVectorEnv]:
    """Whether this is the adapter to SB3, or of a class that derives from it.

    Not `isinstance`: SB3's `VecEnvWrapper` forwards the attributes of the environment inside, and
    would pass for it.
    """
    return HoldsVectorEnv in type(value).__mro__


def is_own_vec_env(value: object) -> TypeGuard[OwnVecEnv]:
    """Whether this is a `VecEnv` of this package, or of a class that derives from it."""
    return OwnVecEnv in type(value).__mro__


def inherits_own(value: object, method: str) -> bool:
    """Whether a `VecEnv` of this package has this method from the package, not overridden."""
    own = (cls for cls in reversed(type(value).__mro__) if OwnVecEnv in cls.__mro__[1:])
    first = next(own, None)
    overridden = method in getattr(value, "__dict__", {})
    return not overridden and getattr(type(value), method, None) is getattr(first, method, value)


class StandsFor(Protocol):
    """Stands directly around a vector environment, and takes its calls: no wrapper of the user."""

    sb3compat_inside: AnyVectorEnv


def wrappers_of(env: AnyVectorEnv) -> Iterator[AnyWrapper]:
    """The vector wrappers around an environment, the outermost first."""
    while issubclass(type(env), VectorWrapper):  # its `__class__` may be another
        wrapper: AnyWrapper = env  # type: ignore[assignment]
        yield wrapper
        env = wrapper.env


def inside_wrappers(env: AnyVectorEnv) -> AnyVectorEnv:
    """The vector environment inside all vector wrappers.

    Its own `unwrapped` may be the simulator that it drives, as that of ManiSkill's is.
    """
    for wrapper in wrappers_of(env):
        env = wrapper.env
    if StandsFor in type(env).__mro__:
        env = object.__getattribute__(env, "sb3compat_inside")  # it forwards what it is asked for
    return env


def holds_vec_env(value: object) -> TypeGuard[HoldsVecEnv]:
    """Whether this is the adapter to Gymnasium, or of a class that derives from it."""
    return HoldsVecEnv in type(value).__mro__


def holds_rows(value: object) -> TypeGuard[HoldsRows]:
    """Whether this is a `VecEnv` of our own whose rows live in workers."""
    return HoldsRows in type(value).__mro__


class ProcessLike(Protocol):
    """A worker process, as `multiprocessing` makes it."""

    @property
    def sentinel(self) -> int:
        """Ready when the process has ended."""

    @property
    def pid(self) -> int | None:
        """The number of the process."""

    def is_alive(self) -> bool:
        """Whether the process runs."""

    def terminate(self) -> None:
        """Ask the process to end."""

    def kill(self) -> None:
        """End the process."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended."""
