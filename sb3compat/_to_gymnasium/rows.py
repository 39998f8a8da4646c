"""Drive the sub-environments of a plain `DummyVecEnv`, or of workers, one by one.

Their own `step` resets ended rows at once, and their own `reset` resets all rows. Driven row by
row, they have every autoreset mode, masked resets, seeds and options as `SyncVectorEnv` over the
same sub-environments. Two things remain SB3's: `DummyVecEnv` rounds rewards to float32, and an
episode that is terminated and truncated at once counts as terminated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from sb3compat._convert.actions import action_rows
from sb3compat._convert.infos import checked_info, own_info, same_step_info
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
)
from sb3compat._rows.commands import Outcome, reset_result, step_env
from sb3compat._upstream.vec_env import forget_waiting, waiting_options, waiting_seeds

# Copies the observation of a row.
Write = Callable[[int, Observation], None]


class RowByRow:
    """The base class of both: which rows have ended, and the last observation of each row.

    What a row returns is read before the next row runs: sub-environments may share their arrays and
    info dicts.

    Args:
        vec_env: The environment.
        mode: The autoreset mode to present.
    """

    # Info keys that SB3 adds: none, as its `step` is not called.
    added_keys: tuple[str, ...] = ()

    def __init__(self, vec_env: Any, mode: AutoresetMode) -> None:
        self._vec_env = vec_env
        self._same_step = mode == AutoresetMode.SAME_STEP
        self._n: int = vec_env.num_envs
        self._layout = Observations(vec_env.observation_space, self._n, from_zero=False)
        # The last observations of the rows.
        self._observed = self._layout.empty()
        self._writers = list(map(_LeafWriter, self._observed, self._layout.leaves))
        compound = self._layout.keys is not None
        self._observe: Write = self._write_parts if compound else self._writers[0].write
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
        """There is nothing to refuse: each row can be reset."""

    def reset(
        self, rows: list[int], seeds: Seeds, options: RowOptions
    ) -> tuple[Observation, list[Info]]:
        """Reset some rows, or all of them.

        Returns:
            The observations of all rows, and their infos, empty where nothing was reset.
        """
        # Seeds and options set on the VecEnv itself apply to the next reset of all rows, as in SB3.
        if len(rows) == self._n:
            if all(seed is None for seed in seeds):
                seeds = waiting_seeds(self._vec_env)
            if not any(options):
                held = zip(waiting_options(self._vec_env), options, strict=True)
                options = [waiting or own for waiting, own in held]
        infos = self._reset({i: {"seed": seeds[i], "options": options[i]} for i in rows})
        if len(rows) == self._n:
            forget_waiting(self._vec_env)
        return self._layout.pack(self._batch()), infos

    def forget_options(self) -> None:
        """Forget the options that wait for the next reset."""
        self._vec_env.set_options()

    def prepare(self, actions: Action) -> list[Action]:
        """The single actions, one for each row."""
        return action_rows(self._vec_env.action_space, actions, self._n)

    def step(self, actions: list[Action]) -> Transition:
        """Step each row; in NEXT_STEP mode, reset a row that ended in the step before."""
        n = self._n
        rewards = np.zeros(n, self._reward_dtype)
        ended, truncated = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        infos: list[Info] = []
        reset_infos: dict[int, Info] = {}
        resets = [False] * n if self._same_step else self.ended.tolist()
        observe, outcome_of = self._observe, self._outcomes(actions, resets)
        for i in range(n):
            observed, rewards[i], termination, truncation, info, first = outcome_of(i)
            if resets[i]:
                reset_infos[i] = own_info(checked_info(info))
            elif termination or truncation:
                ended[i], truncated[i] = True, truncation
                if first is not None:
                    final = observed
                    observed, reset_info = first
                    reset_infos[i] = own_info(checked_info(reset_info))
                    info = same_step_info(final, info, reset_info)
            observe(i, observed)
            infos.append({} if info == {} else own_info(checked_info(info)))
        if reset_infos:
            self._keep_reset_infos(reset_infos)
        if not self._same_step:
            self.ended = ended
        return Transition(self._batch(), rewards, ended, truncated, infos, {})

    def forget(self) -> None:
        """Forget which rows have ended, as a reset of all rows comes next."""
        self.ended[:] = False

    def settle(self) -> None:
        """Reset the rows that have ended, as the `VecEnv` itself would have done at once."""
        self._reset({i: {} for i in np.flatnonzero(self.ended).tolist()})

    def _reset(self, kwargs: dict[int, Kwargs]) -> list[Info]:
        """Reset these rows, each with arguments of its own; the infos of all rows."""
        infos: list[Info] = [{} for _ in range(self._n)]
        reset_infos: dict[int, Info] = {}
        result_of = self._reset_rows(kwargs)
        for i in kwargs:
            observed, info = reset_result(result_of(i))
            self._observe(i, observed)
            infos[i], reset_infos[i] = own_info(checked_info(info)), own_info(info)
        self._keep_reset_infos(reset_infos)
        self.ended[list(kwargs)] = False
        return infos

    def _keep_reset_infos(self, infos: dict[int, Info]) -> None:
        """Store the infos of resets where SB3 stores them; after a step of workers, in a tuple."""
        kept = list(self._vec_env.reset_infos)
        for i, info in infos.items():
            kept[i] = info
        self._vec_env.reset_infos = kept

    # `DummyVecEnv` rounds rewards, `SubprocVecEnv` does not.
    _reward_dtype: type[np.floating[Any]] = np.float64

    # Functions and not iterators, which an environment's `StopIteration` would end.
    def _outcomes(self, actions: list[Action], resets: list[bool]) -> Callable[[int], Outcome]:
        """What a row returns, from its step or from its reset; asked for row by row."""
        raise NotImplementedError

    def _reset_rows(self, kwargs: dict[int, Kwargs]) -> Callable[[int], ResetResult]:
        """What the reset of one of these rows returns; asked for row by row."""
        raise NotImplementedError

    def _write_parts(self, row: int, value: Any) -> None:
        for writer, part in zip(self._writers, self._layout.unpack(value), strict=True):
            writer.write(row, part)

    def _batch(self) -> list[Array]:
        """New arrays with the last observation of each row."""
        return [array.copy() for array in self._observed]


class LocalRows(RowByRow):
    """The sub-environments of a `DummyVecEnv`, in this process."""

    _reward_dtype = np.float32

    def _outcomes(self, actions: list[Action], resets: list[bool]) -> Callable[[int], Outcome]:
        envs, same_step = self._vec_env.envs, self._same_step

        def outcome(i: int) -> Outcome:
            return (
                _of_reset(envs[i].reset())
                if resets[i]
                else step_env(envs[i], actions[i], same_step)
            )

        return outcome

    def _reset_rows(self, kwargs: dict[int, Kwargs]) -> Callable[[int], ResetResult]:
        envs = self._vec_env.envs
        return lambda i: envs[i].reset(**kwargs[i])


class WorkerRows(RowByRow):
    """The sub-environments of a `SubprocVecEnv` or `ParallelVecEnv`, in its workers.

    Every worker gets its command before the first answer is read.
    """

    def __init__(self, vec_env: Any, mode: AutoresetMode, workers: RowCommands) -> None:
        super().__init__(vec_env, mode)
        self._workers = workers

    @property
    def broken(self) -> bool:
        """Whether a worker is lost."""
        return self._workers.lost

    def _outcomes(self, actions: list[Action], resets: list[bool]) -> Callable[[int], Outcome]:
        commands: dict[int, tuple[Any, ...]] = {
            i: ("reset", {}) if resets[i] else ("step", action, self._same_step)
            for i, action in enumerate(actions)
        }
        answers = self._workers.ask(commands)
        return lambda i: _of_reset(answers[i]) if resets[i] else answers[i]

    def _reset_rows(self, kwargs: dict[int, Kwargs]) -> Callable[[int], ResetResult]:
        answers = self._workers.ask({i: ("reset", own) for i, own in kwargs.items()})
        return answers.__getitem__


def _of_reset(result: ResetResult) -> Outcome:
    """A reset in the place of a step, as in NEXT_STEP mode."""
    observation, info = reset_result(result)
    return observation, 0.0, False, False, info, None


class _LeafWriter:
    """Writes the values of one leaf into its batch.

    No closure, as an adapter may be copied or pickled.
    """

    __slots__ = ("array", "dtype", "kinds", "shape")

    def __init__(self, array: Array, leaf: Leaf) -> None:
        self.array, self.dtype, self.shape = array, leaf.dtype, leaf.shape
        kinds = (leaf.dtype.type, int) if leaf.dtype == np.int64 else (leaf.dtype.type,)
        self.kinds = () if leaf.shape else kinds

    def write(self, row: int, value: Any) -> None:
        """Copy one value into its row; cast, or refused, as by `SyncVectorEnv`."""
        kind = type(value)
        if kind is np.ndarray and value.dtype == self.dtype and value.shape == self.shape:
            self.array[row] = value  # nearly always; the last way takes ten times as long
        elif kind in self.kinds:
            self.array[row] = value
        else:
            np.stack([value], out=self.array[row : row + 1])
