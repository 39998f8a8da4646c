"""The fast path of a plain native environment: the checks of a step inline, no call for each.

Results of a step in the form of nearly all native environments are converted here; results of any
other form are handled like those of other environments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3compat._convert.infos import FINAL_OBS_KEYS, TERMINAL_OBSERVATION
from sb3compat._convert.split_infos import split_infos, split_step_infos
from sb3compat._convert.types import (
    Array,
    Flags,
    Info,
    Rewards,
    Rows,
    Transition,
    VectorStepResult,
)
from sb3compat._to_sb3.whole import VectorSource
from sb3compat.errors import ConversionError, shown

_BOOL = np.dtype(np.bool_)
_REWARDS = frozenset(map(np.dtype, (np.float32, np.float64)))


class NativeSource(VectorSource):
    """A plain native environment. The arguments are those of `VectorSource`.

    It has no wrappers, its ended rows are still to be reset, and an observation is one array.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        (leaf,) = self._observations.leaves
        self._shape, self._dtype = (self.num_envs, *leaf.shape), leaf.dtype
        self._restart_rows: Any = self._base.restart_rows

    def receive(self) -> Transition:
        """Step all rows, and reset those that have ended."""
        result = self._driven.step(self._sent)
        if not self._is_plain(result):
            return self._presented(result)
        obs, rewards, terminated, truncated, infos = result
        ended = terminated | truncated
        truncated = truncated & ~terminated
        if self._copy:
            obs = obs.copy()
        row_infos = split_step_infos(infos, truncated)
        step = Transition([obs], rewards.astype(np.float32), ended, truncated, row_infos, {})
        (rows,) = ended.nonzero()
        return self._restarted(step, rows) if len(rows) else step

    def receive_into(
        self, obs: Array, finals: Array, rewards: Rewards, ended: Flags, truncated: Flags
    ) -> tuple[Info, dict[int, Info]] | Transition:
        """Step all rows, and reset those that have ended; write the results into arrays.

        Args:
            obs: The observations are written into this array.
            finals: The last observations, in the rows that have ended.
            rewards: The rewards, as float32.
            ended: Which rows' episodes ended.
            truncated: Which of them were truncated and not terminated as well.

        Returns:
            The infos, a dict of arrays that nothing else uses, and the infos of the resets by row.
            Or a transition, with nothing written, if the result of the step is of another form.
        """
        result = self._driven.step(self._sent)
        if not (self._is_plain(result) and all(map(_is_plain_array, result[4].values()))):
            return self._presented(result)
        new, given, terminated, late, infos = result
        infos = {key: value.copy() for key, value in infos.items()}
        rewards[...] = given
        np.logical_or(terminated, late, out=ended)
        np.greater(late, terminated, out=truncated)
        obs[...] = new
        (rows,) = ended.nonzero()
        if not len(rows):
            return infos, {}
        finals[rows] = obs[rows]
        if self._restart_rows is None:
            step = self._with_resets(Transition([obs], rewards, ended, truncated, [], {}))
            obs[...] = step.observations[0]
            return infos, step.reset_infos
        obs[rows], reset_infos = self._firsts(rows)
        return infos, dict(zip(rows.tolist(), reset_infos, strict=True))

    def _is_plain(self, result: VectorStepResult) -> bool:
        """Whether a step has returned what nearly all native environments do."""
        obs, rewards, terminated, truncated, infos = result
        return (
            type(obs) is type(rewards) is np.ndarray
            and obs.dtype == self._dtype
            and obs.shape == self._shape
            and rewards.dtype in _REWARDS
            and rewards.shape == (self.num_envs,)
            and self._is_flags(terminated)
            and self._is_flags(truncated)
            and FINAL_OBS_KEYS[0] not in infos
            and FINAL_OBS_KEYS[1] not in infos
        )

    def _is_flags(self, value: Any) -> bool:
        shape = (self.num_envs,)
        return type(value) is np.ndarray and value.dtype is _BOOL and value.shape == shape

    def _restarted(self, step: Transition, rows: Rows) -> Transition:
        """The step, with the last observations of these rows, and the first of new episodes."""
        (obs,) = step.observations
        numbers = rows.tolist()
        for i, final in zip(numbers, obs[rows], strict=True):
            step.infos[i][TERMINAL_OBSERVATION] = final
        if self._restart_rows is None:
            return self._with_resets(step)
        if not self._owned:  # the environment's own array is not written to
            obs = obs.copy()
        obs[rows], infos = self._firsts(rows)
        reset_infos = dict(zip(numbers, infos, strict=True))
        return step._replace(observations=[obs], reset_infos=reset_infos)

    def _firsts(self, rows: Rows) -> tuple[Array, list[Info]]:
        """The first observations of new episodes in these rows, and their infos."""
        given = self._base.call(self._restart_rows, self._base.env, rows)
        expected = (len(rows), *self._shape[1:])
        if type(given) is tuple and len(given) == 2:
            obs, infos = given
            if np.shape(obs) == expected and obs.dtype == self._dtype and isinstance(infos, dict):
                return obs, split_infos(infos, len(rows))
        raise ConversionError(
            f"Expected restart_rows of {self._base.env} to return (observations, infos), an array "
            f"of shape {expected} and dtype {self._dtype} and a dict, got {shown(given)}. Return "
            "these."
        )


def _is_plain_array(value: Any) -> bool:
    """Whether a copy of an array shares nothing with it."""
    return type(value) is np.ndarray and not value.dtype.hasobject
