"""The parts of a worker, as its functions make them: single, vector and `VecEnv` environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector import SyncVectorEnv, VectorEnv

from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._convert.spaces import BatchLayout
from sb3compat._convert.types import SingleEnv, Space, SubEnvs
from sb3compat._parallel.vec_env_part import VecEnvSource
from sb3compat._rows.subenvs import LocalSubEnvs
from sb3compat._rows.vec_env_subenvs import MethodEnvs
from sb3compat._to_gymnasium.presented import presented_space
from sb3compat._to_sb3.rows_sync import EnvRows
from sb3compat._upstream.vec_env import converted, is_vec_env
from sb3compat.errors import UnsupportedEnvError, UnsupportedSpaceError, shown

if TYPE_CHECKING:
    from sb3compat._to_sb3.source import Source

EnvFn = Callable[[], Any]


@dataclass
class Part:
    """What one function has made, or several that make single environments.

    Attributes:
        source: Steps and resets the rows.
        subenvs: Reaches their sub-environments.
        rows: The rows, as numbers among those of all workers.
        name: What it is, for messages.
        envs: The single environments, if that is what they are.
    """

    source: Source
    subenvs: SubEnvs
    rows: slice
    name: str
    envs: list[SingleEnv] | None = None

    @property
    def first(self) -> int:
        """The number of the first row."""
        return int(self.rows.start)


class Made:
    """The parts of a worker and their common spaces.

    Attributes:
        counts: The number of rows of each function.
        parts: The parts; their rows count from 0 as long as `number_from` was not called.
        envs: What the functions have returned.
        making: Which function is being called.
        layout: The layout of observations.
    """

    layout: Observations

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.parts: list[Part] = []
        self.envs: list[Any] = []
        self.making = 0
        self._singles: list[SingleEnv] = []

    def make(self, env_fns: Sequence[EnvFn], first_fn: int) -> None:
        """Call the functions.

        Args:
            env_fns: The functions.
            first_fn: The number of the first of them, for messages.

        Raises:
            UnsupportedEnvError: If one returns no environment, or one that is in another row.
            UnsupportedSpaceError: If the spaces of two parts differ.
        """
        for number, env_fn in enumerate(env_fns, first_fn):
            self.making = number
            env = converted(env_fn())
            self.envs.append(env)
            if any(base_of(env) is base_of(other) for other in self.envs[:-1]):
                raise UnsupportedEnvError(
                    f"Expected env_fns[{number}] to make a new environment, but it has returned "
                    f"{env}, which an earlier one has returned already. Write "
                    "`lambda: gym.make(id)`, not `lambda: env`."
                )
            self._check_spaces(number)
            self._add(env, number)
        self._add_singles()
        self.layout = Observations(self.spaces[0], 1)

    @property
    def spaces(self) -> tuple[Space, Space]:
        """The space of one observation, and of one action."""
        return spaces_of(self.envs[0], self.making)

    @property
    def shown_space(self) -> Space:
        """The space that contains the observations, where all parts say the same."""
        declared = self.spaces[0]
        shown = [presented_space(env) if is_vec_env(env) else declared for env in self.envs]
        return shown[0] if all(space == shown[0] for space in shown) else declared

    @property
    def single(self) -> bool:
        """Whether all parts are single environments."""
        return all(part.envs is not None for part in self.parts)

    def number_from(self, first: int) -> None:
        """Number the rows from `first` on."""
        for part in self.parts:
            count = part.rows.stop - part.rows.start
            part.rows = slice(first, first + count)
            first += count

    def _check_spaces(self, number: int) -> None:
        check_same_spaces(self.spaces, spaces_of(self.envs[-1], number), number)

    def _add(self, env: Any, number: int) -> None:
        if isinstance(env, gym.Env):
            self._singles.append(env)
            self.counts.append(1)
            return
        self._add_singles()
        n: int = env.num_envs
        observations, actions = layouts(self.spaces, n, keep_dtypes=True)
        start = sum(self.counts)
        rows = slice(start, start + n)
        if is_vec_env(env):
            source: Source = VecEnvSource(env, observations, actions)
            self.parts.append(Part(source, MethodEnvs(env), rows, _name_of(env)))
        else:
            self.parts.append(_vector_part(env, observations, actions, rows))
        self.counts.append(n)

    def _add_singles(self) -> None:
        """Neighbours that are single environments are stepped in one loop."""
        envs, self._singles = self._singles, []
        if not envs:
            return
        stop = sum(self.counts)
        observations, actions = layouts(self.spaces, len(envs))
        held = [None] * len(envs)
        source = EnvRows(envs, observations, actions, copy=True, batch=[], held=held)
        rows = slice(stop - len(envs), stop)
        self.parts.append(Part(source, LocalSubEnvs(envs), rows, "single environments", envs))


def layouts(
    spaces: tuple[Space, Space], num_envs: int, *, keep_dtypes: bool = False
) -> tuple[Observations, Actions]:
    """The layouts of batches of so many rows."""
    observations = Observations(spaces[0], num_envs, keep_dtypes=keep_dtypes)
    return observations, Actions(spaces[1], num_envs)


def base_of(env: Any) -> object:
    """The environment inside all wrappers."""
    return getattr(env, "unwrapped", env)


def spaces_of(env: Any, number: int) -> tuple[Space, Space]:
    """The spaces of one row.

    Args:
        env: What a function has returned.
        number: The number of the function.

    Raises:
        UnsupportedEnvError: If this is no environment.
    """
    if isinstance(env, VectorEnv):
        return env.single_observation_space, env.single_action_space
    if isinstance(env, gym.Env) or is_vec_env(env):
        return env.observation_space, env.action_space
    raise UnsupportedEnvError(
        f"Expected env_fns[{number}] to return a gymnasium.Env, a gymnasium.vector.VectorEnv or a "
        f"VecEnv, got {shown(env)} ({type(env).__name__})."
    )


def check_same_spaces(first: tuple[Space, Space], other: tuple[Space, Space], number: int) -> None:
    """Refuse a part whose rows do not fit into one batch with those of the first.

    Bounds may differ: as `DummyVecEnv`, we go by those of the first.

    Raises:
        UnsupportedSpaceError: If they do not fit; it is a `RuntimeError`, too.
    """
    for what, one, two in zip(("observation_space", "action_space"), first, other, strict=True):
        if one != two and _form(one, what) != _form(two, what):
            raise UnsupportedSpaceError(
                f"Expected all of env_fns to make environments with the same {what}, but for its "
                f"bounds, got {one} from env_fns[0] and {two} from env_fns[{number}]."
            )


def _form(space: Space, what: str) -> tuple[Any, ...]:
    """What has to be equal for rows to be in one batch: all but the bounds."""
    layout = BatchLayout(space, 1, what)
    leaves = [(leaf.shape, leaf.dtype) for leaf in layout.leaves]
    return layout.kind, layout.keys, [*map(type, layout.unpack(space))], leaves, layout.starts


def _vector_part(env: Any, observations: Observations, actions: Actions, rows: slice) -> Part:
    # Imported only where there is a vector environment.
    from sb3compat._rows.subenvs import subenvs_of
    from sb3compat._to_sb3.accept import check_env, find_mode
    from sb3compat._to_sb3.source import Settings, make_source

    check_env(env)
    name = _name_of(env)
    # Row by row, infos are copied before the next row is stepped, which may change what they share.
    settings = Settings(env, find_mode(env, None), copy=type(env) is SyncVectorEnv)
    source = make_source(settings, observations, actions)
    return Part(source, subenvs_of(env), rows, name)


def _name_of(env: Any) -> str:
    """The class of an environment and of those inside, as `VecNormalize(DummyVecEnv)`."""
    inside = getattr(env, "venv", getattr(env, "env", None))
    name = type(env).__name__
    return name if inside is None else f"{name}({_name_of(inside)})"
