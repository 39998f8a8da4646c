"""The parts of a worker, as its functions make them: single, vector and `VecEnv` environments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
from gymnasium.vector import SyncVectorEnv, VectorEnv

from sb3compat._convert.actions import Actions
from sb3compat._convert.infos import TRUNCATED
from sb3compat._convert.observations import Observations
from sb3compat._convert.spaces import BatchLayout
from sb3compat._convert.types import (
    Array,
    Info,
    Options,
    Seeds,
    Source,
    Space,
    SubEnvs,
    Transition,
    inside_wrappers,
    is_own_vec_env,
    wrappers_of,
)
from sb3compat._parallel.extras import Extras, OwnArray, share
from sb3compat._parallel.made_once import base_of, made_twice
from sb3compat._parallel.memory import Buffers
from sb3compat._parallel.messages import Described, named
from sb3compat._parallel.vec_env_part import VecEnvSource
from sb3compat._rows.subenvs import LocalSubEnvs
from sb3compat._rows.vec_env_subenvs import MethodSubEnvs
from sb3compat._to_gymnasium.presented import presented_space
from sb3compat._to_sb3.rows_sync import EnvRows
from sb3compat._upstream.vec_env import converted, is_vec_env, layers_of
from sb3compat.errors import UnsupportedEnvError, UnsupportedSpaceError, shown

EnvFn = Callable[[], Any]

_SPACES = ("observation_space", "action_space")


@dataclass
class Part:
    """Rows of a worker that are stepped and reset together.

    Attributes:
        source: Steps and resets the rows.
        subenvs: Reaches their sub-environments.
        rows: The rows, as numbers among those of all workers.
        name: What it is, for messages.
        single: Whether the rows are single environments, each of which takes commands by itself.
    """

    source: Source
    subenvs: SubEnvs
    rows: slice
    name: str
    single: bool = False

    @property
    def where(self) -> str:
        """Its rows, for messages."""
        return named(self.rows)

    @property
    def failed(self) -> int | None:
        """The row in which the last exception was raised, where that is known."""
        failed: int | None = getattr(self.source, "failed", None)
        return None if failed is None else int(self.rows.start) + failed

    def number_from(self, first: int) -> int:
        """Number the rows from `first` on; returns the number behind the last one."""
        self.rows = slice(first, first + self.rows.stop - self.rows.start)
        if isinstance(self.source, EnvRows):
            self.source.number_from(first)
        return int(self.rows.stop)

    def reset(
        self, out: Buffers, seeds: Seeds, options: Sequence[Options] | None
    ) -> tuple[list[Info], list[OwnArray]]:
        """Reset all rows.

        Args:
            out: The observations are written into these arrays, of the rows of all workers.
            seeds: The seed of each row.
            options: The options of each row; None if none were set since the last time.

        Returns:
            The infos, and the observations that do not fit into the arrays.
        """
        if options is not None:
            self.source.check_options(options)
        batch, infos = self.source.reset(seeds, options or [{}] * len(seeds))
        return infos, share(out.observations, self.rows, batch, self.name)

    def send(self, actions: list[Array]) -> None:
        """Start the step, with its own rows of these actions of all rows."""
        self.source.send([array[self.rows] for array in actions])

    def receive(self, out: Buffers, extras: Extras, *, shared: bool) -> None:
        """Finish the step.

        Args:
            out: What is of fixed size is written into these arrays.
            extras: What the arrays do not say is added to these.
            shared: Whether the parent sees all of the arrays.
        """
        rows = self.rows
        step = self._received(out, shared=shared)
        if isinstance(step, Transition):
            arrays = [*out.observations, out.rewards]
            values = [*step.observations, step.rewards]
            extras.arrays.extend(share(arrays, rows, values, self.name))
            out.ended[rows], out.truncated[rows] = step.ended, step.truncated
            extras.infos.update(_more_than_arrays(step, rows.start))
            resets = step.reset_infos
        else:
            infos, resets = step
            if infos:
                extras.vectors.append((rows, infos))
        # None and other values that are no dicts arrive as they are.
        more = {rows.start + i: info for i, info in resets.items() if info != {}}
        extras.reset_infos.update(more)

    def _received(self, out: Buffers, *, shared: bool) -> Transition | tuple[Info, dict[int, Info]]:
        """The transition of the source, if it has not written the results into the arrays."""
        # `NativeSource` has it.
        receive_into: Any = getattr(self.source, "receive_into", None)
        if not shared or receive_into is None:
            return self.source.receive()
        arrays = out.observations[0], out.finals[0], out.rewards, out.ended, out.truncated
        result: Transition | tuple[Info, dict[int, Info]]
        result = receive_into(*(array[self.rows] for array in arrays))
        return result


def _more_than_arrays(step: Transition, first: int) -> Iterator[tuple[int, Info]]:
    """The infos, by row from `first` on, that contain more than that the episode continues."""
    for row, (info, ended) in enumerate(zip(step.infos, step.ended.tolist(), strict=True), first):
        if ended or len(info) != 1 or info.get(TRUNCATED) is not False:
            yield row, info


class Parts:
    """The parts of a worker and their common spaces.

    Attributes:
        counts: The number of rows of each function.
        envs: What the functions have returned.
        making: Which function is being called.
    """

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._parts: list[Part] = []
        self.envs: list[Any] = []
        self.making = 0

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    def make(self, env_fns: Sequence[EnvFn], first_fn: int, note: Callable[[int], None]) -> None:
        """Call the functions.

        Args:
            env_fns: The functions.
            first_fn: The number of the first of them, for messages.
            note: Is told the number of each before it is called.

        Raises:
            UnsupportedEnvError: If one returns no environment, or one that is in another row.
            UnsupportedSpaceError: If the spaces of two parts differ.
        """
        for number, env_fn in enumerate(env_fns, first_fn):
            self.making = number
            note(number)
            env = converted(env_fn())
            self.envs.append(env)
            if any(base_of(env) is base_of(other) for other in self.envs[:-1]):
                raise made_twice(number, env)
            check_same_spaces(self.spaces, spaces_of(env, number), number, first_fn)
        self.making = first_fn
        for single, group in groupby(self.envs, _is_single):
            # Neighbours that are single environments are stepped in one loop.
            for envs in [list(group)] if single else [[env] for env in group]:
                self._add(envs, single)
                self.making += len(envs)

    @property
    def spaces(self) -> tuple[Space, Space]:
        """The space of one observation, and of one action."""
        return spaces_of(self.envs[0], self.making)

    @property
    def largest_seed(self) -> int | None:
        """The largest seed that each row takes; None if all rows take any."""
        found = [_largest_seed(env) for env in self.envs]
        return min((seed for seed in found if seed is not None), default=None)

    @property
    def shown_space(self) -> Space:
        """The space that contains the observations, where all parts say the same."""
        declared = self.spaces[0]
        shown = [presented_space(env) if is_vec_env(env) else declared for env in self.envs]
        return shown[0] if all(space == shown[0] for space in shown) else declared

    def _add(self, envs: list[Any], single: bool) -> None:
        counts = [1] * len(envs) if single else [envs[0].num_envs]
        self.counts += counts
        own = layouts(self.spaces, sum(counts), keep_dtypes=not single)
        self._parts.append(_part_of_singles(envs, *own) if single else _part_of(envs[0], *own))


def _is_single(env: object) -> bool:
    # EnvPool's classes are of both kinds.
    return isinstance(env, gym.Env) and not isinstance(env, VectorEnv)


def layouts(
    spaces: tuple[Space, Space], num_envs: int, *, keep_dtypes: bool = False
) -> tuple[Observations, Actions]:
    """The layouts of batches of so many rows."""
    observations = Observations(spaces[0], num_envs, keep_dtypes=keep_dtypes)
    return observations, Actions(spaces[1], num_envs)


def _largest_seed(env: Any) -> int | None:
    if not isinstance(env, VectorEnv):
        base: Any = base_of(env)
        return base.largest_seed if is_own_vec_env(base) else None
    from sb3compat._to_sb3.partial_reset import attribute_of  # as in `_part_of`

    largest: int | None = attribute_of(inside_wrappers(env), "largest_seed")
    return largest


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
        f"VecEnv, got {shown(env)} ({type(env).__name__}). Return an environment, for example "
        "gym.make(id); shimmy converts environments of old gym."
    )


def check_same_spaces(
    first: tuple[Space, Space], other: tuple[Space, Space], number: int, first_number: int = 0
) -> None:
    """Refuse a part whose rows do not fit into one batch with those of the first.

    Bounds may differ: as `DummyVecEnv`, we go by those of the first.

    Raises:
        UnsupportedSpaceError: If they do not fit; it is a `RuntimeError`, too.
    """
    for what, one, two in zip(_SPACES, first, other, strict=True):
        if not _same_form(one, two, what):
            raise UnsupportedSpaceError(
                f"Expected all of env_fns to make environments with the same {what}, but for its "
                "bounds, and with the keys of a Dict in the same order, got "
                f"{one} from env_fns[{first_number}] and {two} from env_fns[{number}]. "
                "Make them alike."
            )


def check_replacement(first: Described, other: Described, functions: str) -> None:
    """Refuse the parts of a new worker whose rows do not fit into those of the one that was lost.

    Args:
        first: What the first worker has made.
        other: What the new one has made.
        functions: The functions of both, for the message.

    Raises:
        UnsupportedSpaceError: If they do not fit.
    """
    pairs = zip(first.spaces, other.spaces, _SPACES, strict=True)
    if first.rows != other.rows or not all(_same_form(*pair) for pair in pairs):
        raise UnsupportedSpaceError(
            f"Expected {functions} to make the rows and spaces that they made before their worker "
            f"was lost, but for the bounds, got rows={other.rows} with {other.spaces} after "
            f"rows={first.rows} with {first.spaces}. Let the functions make the same each time, "
            "or close this environment and build a new one."
        )


def _same_form(one: Space, two: Space, what: str) -> bool:
    """Whether rows of the two fit into one batch: all but the bounds is equal."""
    first, second = (BatchLayout(space, 1, what) for space in (one, two))
    # Gymnasium's equality does not see the order of keys, in which the arrays are laid out.
    return first.keys == second.keys and (one == two or _form(first, one) == _form(second, two))


def _form(layout: BatchLayout, space: Space) -> tuple[Any, ...]:
    """The properties that must be equal for rows of one batch."""
    kinds = map(type, layout.unpack(space))
    leaves = [(leaf.shape, leaf.dtype) for leaf in layout.leaves]
    return layout.kind, list(zip(kinds, leaves, layout.starts, strict=True))


def _part_of_singles(envs: list[Any], observations: Observations, actions: Actions) -> Part:
    batch = observations.empty()  # written to in each step, and copied into the shared memory
    held = [None] * len(envs)
    owner = SimpleNamespace(envs=envs)
    source = EnvRows(owner, observations, actions, copy=True, batch=batch, held=held)
    rows = slice(0, len(envs))
    return Part(source, LocalSubEnvs(owner), rows, "single environments", single=True)


def _part_of(env: Any, observations: Observations, actions: Actions) -> Part:
    """The part that is a vector environment or a `VecEnv`."""
    name, rows = _name_of(env), slice(0, observations.num_envs)
    if isinstance(env, VectorEnv):
        # Imported only where there is a vector environment.
        from sb3compat._to_sb3.accept import as_vec_env

        env = as_vec_env(env) or env
    if is_vec_env(env):
        return Part(VecEnvSource(env, observations, actions), MethodSubEnvs(env), rows, name)
    from sb3compat._rows.subenvs import subenvs_of
    from sb3compat._to_sb3.accept import check_env, find_mode
    from sb3compat._to_sb3.source import make_source

    check_env(env)
    # Row by row, infos are copied before the next row is stepped, which may change what they share.
    mode, copy = find_mode(env, None), type(env) is SyncVectorEnv
    source = make_source(env, mode, observations, actions, copy=copy)
    return Part(source, subenvs_of(env), rows, name)


def _name_of(env: Any) -> str:
    """The class of an environment and of those inside, as `VecNormalize(DummyVecEnv)`."""
    layers = [*layers_of(env)]
    if isinstance(env, VectorEnv):
        layers = [*wrappers_of(env), inside_wrappers(env)]
    *outer, inner = (type(layer).__name__ for layer in layers)
    return "".join(f"{name}(" for name in outer) + inner + ")" * len(outer)
