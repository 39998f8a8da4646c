"""Drive the sub-environments of a plain `DummyVecEnv`, or of workers, one by one.

Their own `step` resets ended rows at once, and their own `reset` resets all rows. Driven row by
row, they have every autoreset mode, masked resets, seeds and options as `SyncVectorEnv` over the
same sub-environments. Two things remain SB3's: `DummyVecEnv` rounds rewards to float32, and an
episode that is terminated and truncated at once counts as terminated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from sb3compat._convert.actions import action_rows
from sb3compat._convert.infos import own_info, same_step_info
from sb3compat._convert.observations import Observations
from sb3compat._convert.spaces import Leaf
from sb3compat._convert.types import (
    Action,
    Array,
    Flags,
    Info,
    Kwargs,
    Observation,
    ResetResult,
    RowCommands,
    RowOptions,
    Seeds,
    Transition,
    Value,
)
from sb3compat._rows.commands import reset_env, step_env
from sb3compat._upstream.vec_env import forget_waiting, waiting_options, waiting_seeds
from sb3compat.errors import PartialResetError, shown

# Copies the observation of a row.
Write = Callable[[int, Observation], None]


class Rows:
    """The base of both: which rows have ended, and the last observation of each row.

    What a row returns is read before the next row runs: sub-environments may share their arrays and
    info dicts.

    Args:
        vec_env: The environment.
        mode: The autoreset mode to present.
    """

    # Info keys that SB3 adds: none, as none of its code is between.
    added_keys: tuple[str, ...] = ()

    def __init__(self, vec_env: Any, mode: AutoresetMode) -> None:
        self._vec_env = vec_env
        self._mode = mode
        self._n: int = vec_env.num_envs
        self._layout = Observations(vec_env.observation_space, self._n, from_zero=False)
        # The last observations of the rows, and which rows have returned one.
        self._observed = self._layout.empty()
        self._places = list(map(_Place, self._observed, self._layout.leaves))
        compound = self._layout.keys is not None
        self._observe: Write = self._write_parts if compound else self._places[0].write
        self._seen = [False] * self._n
        # The rows whose episode has ended and that have not been reset since.
        self.ended: Flags = np.zeros(self._n, np.bool_)

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""
        return False

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own."""
        return True

    def check_reset(self, rows: list[int], seeds: Seeds, options: RowOptions) -> None:
        """Refuse a masked reset while the observations of the other rows are not known.

        Raises:
            PartialResetError: If all rows have to be reset first.
        """
        unseen = [i for i in range(self._n) if not self._seen[i] and i not in rows]
        if unseen:
            raise PartialResetError(
                f"Expected reset() of all rows first, got reset_mask for the rows {shown(rows)}: "
                f"what the rows {shown(unseen)} returned last, before {self._vec_env} was adapted, "
                "is not known."
            )

    def reset(
        self, rows: list[int], seeds: Seeds, options: RowOptions
    ) -> tuple[Observation, list[Info]]:
        """Reset some rows, or all of them.

        Returns:
            The observations of all rows, and their infos, empty where nothing was reset.
        """
        kwargs: list[Kwargs] = []
        every = len(rows) == self._n
        # Seeds and options set on the VecEnv itself are for the next reset of all rows, as in SB3.
        held_seeds, held_options = waiting_seeds(self._vec_env), waiting_options(self._vec_env)
        use_held = every and not any(options)
        for i in rows:
            seed = held_seeds[i] if every and seeds[i] is None else seeds[i]
            given = (held_options[i] if use_held else None) or options[i]
            kwargs.append({"seed": seed, "options": given})
        infos = self._reset(rows, kwargs)
        if every:
            forget_waiting(self._vec_env)
        return self._layout.pack(self._batch()), infos

    def forget_options(self) -> None:
        """Forget the options that wait for the next reset."""
        self._vec_env.set_options()

    def prepare(self, actions: Action) -> list[Action]:
        """The single actions, one for each row."""
        return action_rows(self._vec_env.action_space, actions, self._n)

    def forget(self) -> None:
        """Forget which rows have ended."""
        self.ended[:] = False

    def settle(self) -> None:
        """Reset the rows that have ended, as the `VecEnv` itself would have done at once."""
        self._reset(rows := np.flatnonzero(self.ended).tolist(), [{}] * len(rows))

    def _reset(self, rows: list[int], kwargs: list[Kwargs]) -> list[Info]:
        infos: list[Info] = [{} for _ in range(self._n)]
        reset_infos = list(self._vec_env.reset_infos)
        results = self._reset_rows(rows, kwargs)
        for i, (observed, info) in zip(rows, results, strict=True):
            self._observe(i, observed)
            self._seen[i] = True
            infos[i], reset_infos[i] = own_info(info), own_info(info)
        self._vec_env.reset_infos = reset_infos
        self.ended[rows] = False
        return infos

    def _reset_rows(self, rows: list[int], kwargs: list[Kwargs]) -> Iterable[ResetResult]:
        """Reset the rows; the result of each is read before the next row is reset."""
        raise NotImplementedError

    def _write_parts(self, row: int, value: Value) -> None:
        for place, part in zip(self._places, self._layout.unpack(value), strict=True):
            place.write(row, part)

    def _batch(self) -> list[Array]:
        """New arrays with the last observation of each row."""
        return [array.copy() for array in self._observed]


class _Place:
    """Where the values of one leaf go. No closure, as an adapter may be copied or pickled."""

    __slots__ = ("array", "dtype", "kinds", "shape")

    def __init__(self, array: Array, leaf: Leaf) -> None:
        self.array, self.dtype, self.shape = array, leaf.dtype, leaf.shape
        kinds = (leaf.dtype.type, int) if leaf.dtype == np.int64 else (leaf.dtype.type,)
        self.kinds = () if leaf.shape else kinds

    def write(self, row: int, value: Value) -> None:
        """Copy one value into its row; cast, or refused, as by `SyncVectorEnv`."""
        kind = type(value)
        if kind is np.ndarray and value.dtype == self.dtype and value.shape == self.shape:
            self.array[row] = value  # nearly always; the last way takes ten times as long
        elif kind in self.kinds:
            self.array[row] = value
        else:
            np.stack([value], out=self.array[row : row + 1])


class LocalRows(Rows):
    """The sub-environments of a `DummyVecEnv`, in this process."""

    def step(self, actions: list[Action]) -> Transition:
        """Step each row; in NEXT_STEP mode, reset a row that ended in the step before."""
        n, vec_env = self._n, self._vec_env
        same_step = self._mode == AutoresetMode.SAME_STEP
        resetting = self.ended.tolist() if not same_step and self.ended.any() else None
        rewards = np.zeros(n, np.float32)
        ended, truncated = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        infos: list[Info] = []
        observe = self._observe
        for i, (env, action) in enumerate(zip(vec_env.envs, actions, strict=True)):
            if resetting and resetting[i]:
                observed, info = env.reset()
                vec_env.reset_infos[i] = own_info(info)
            else:
                observed, rewards[i], termination, truncation, info, first = step_env(
                    env, action, same_step
                )
                if termination or truncation:
                    ended[i], truncated[i] = True, truncation
                    if first is not None:
                        final = observed
                        observed, reset_info = first
                        vec_env.reset_infos[i] = own_info(reset_info)
                        info = same_step_info(final, info, reset_info)
            observe(i, observed)
            infos.append(own_info(info) if info else {})
        self._seen = [True] * n
        if not same_step:
            self.ended = ended
        return Transition(self._batch(), rewards, ended, truncated, infos, {})

    def _reset_rows(self, rows: list[int], kwargs: list[Kwargs]) -> Iterator[ResetResult]:
        for i, arguments in zip(rows, kwargs, strict=True):
            yield reset_env(self._vec_env.envs[i], arguments)


class RemoteRows(Rows):
    """The sub-environments of a `SubprocVecEnv` or `ParallelVecEnv`, in its workers.

    Every worker gets its command before the first answer is waited for.
    """

    def __init__(self, vec_env: Any, mode: AutoresetMode, workers: RowCommands) -> None:
        super().__init__(vec_env, mode)
        self._workers = workers

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""
        return self._workers.lost

    def step(self, actions: list[Action]) -> Transition:
        """Step or reset each row, as `LocalRows` does; all at the same time."""
        n = self._n
        same_step = self._mode == AutoresetMode.SAME_STEP
        answers = self._workers.ask(
            {
                i: ("reset", {}) if self.ended[i] else ("step", action, same_step)
                for i, action in enumerate(actions)
            }
        )
        rewards = np.zeros(n, np.float64)
        ended, truncated = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        infos: list[Info] = []
        reset_infos = list(self._vec_env.reset_infos)
        for i, answer in answers.items():
            if not self.ended[i]:
                observed, rewards[i], termination, truncated[i], info, first = answer
                ended[i] = termination or truncated[i]
                if first is not None:
                    final = observed
                    observed, reset_info = first
                    reset_infos[i] = own_info(reset_info)
                    info = same_step_info(final, info, reset_info)
            else:
                observed, info = answer
                reset_infos[i] = own_info(info)
            self._observe(i, observed)
            infos.append(info)
        self._vec_env.reset_infos = reset_infos
        self._seen = [True] * n
        if not same_step:
            self.ended = ended
        return Transition(self._batch(), rewards, ended, truncated, infos, {})

    def _reset_rows(self, rows: list[int], kwargs: list[Kwargs]) -> list[ResetResult]:
        commands = {i: ("reset", arguments) for i, arguments in zip(rows, kwargs, strict=True)}
        return list(self._workers.ask(commands).values())
