"""How the end of an episode is converted: one small object for each autoreset mode.

Each converts the results of a step to those of SB3.

- `SameStep`: the environment returns the last observation separately, and has reset the row
  already.
- `ResetWithin`: NEXT_STEP with a partial reset, and DISABLED. The rows that ended are still to be
  reset, which also cancels the autoreset pending in NEXT_STEP mode.
- `Padded`: NEXT_STEP without a partial reset. Opt-in, as its results are not exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from gymnasium.vector import SyncVectorEnv

from sb3compat._convert.infos import (
    FINAL_INFO,
    FINAL_OBS_KEYS,
    TERMINAL_OBSERVATION,
    TRUNCATED,
    refuse_final_keys,
)
from sb3compat._convert.observations import Observations
from sb3compat._convert.repeats import RepeatWatch, refuse_same_memory
from sb3compat._convert.split_infos import (
    mask_of,
    refuse_mixed_final,
    split_infos,
    split_step_infos,
)
from sb3compat._convert.types import (
    Array,
    Flags,
    Info,
    Observation,
    Rewards,
    Rows,
    Transition,
    VectorInfos,
)
from sb3compat._to_sb3.bases import Base
from sb3compat._upstream.sync_vector_env import held_observations
from sb3compat.errors import (
    AutoresetModeError,
    ConversionError,
    MissingFinalObservationError,
    shown,
)

PADDING = "sb3compat.padding"
EPISODE = "episode"


class Stepped(NamedTuple):
    """One step of a vector environment, its form checked.

    Attributes:
        observations: One array for each leaf of the space.
        rewards: float32 of shape `(n,)`.
        ended: Which rows' episodes ended.
        truncated: Which of them were truncated and not terminated as well.
        infos: The dict of arrays.
        own_keys: The info keys that the environment itself gave, not a wrapper, with their masks;
            None for all.
    """

    observations: list[Array]
    rewards: Rewards
    ended: Flags
    truncated: Flags
    infos: VectorInfos
    own_keys: Mapping[str, Flags | None] | None


class Mode:
    """Converts a step to SB3's.

    Args:
        base: The environment, without wrappers.
        observations: The layout of its observations.

    Attributes:
        leaves_resets: Whether the caller has to reset the rows that have ended.
    """

    leaves_resets = False

    def __init__(self, base: Base, observations: Observations) -> None:
        self._base, self._observations = base, observations

    def reset(self, infos: list[Info]) -> None:
        """Handle a reset of all rows, and refuse infos that would be mistaken for others."""

    def transition(self, step: Stepped) -> Transition:
        """The transition for SB3; if `leaves_resets`, without the resets of the ended rows."""
        raise NotImplementedError


class ResetWithin(Mode):
    """NEXT_STEP with a partial reset, and DISABLED: the rows that ended are still to be reset."""

    leaves_resets = True

    def transition(self, step: Stepped) -> Transition:
        """The step, with the last observations of the rows that ended."""
        row_infos = split_step_infos(step.infos, step.truncated)
        (rows,) = step.ended.nonzero()
        if len(rows):
            _check_mode(step, self._base)
            finals = self._observations.rows(step.observations, rows)
            for i, final in zip(rows.tolist(), finals, strict=True):
                row_infos[i][TERMINAL_OBSERVATION] = final
        return Transition(*step[:4], row_infos, {})


class SameStep(Mode):
    """SAME_STEP: the last observation is in the infos, and the ended rows are reset already."""

    def __init__(self, base: Base, observations: Observations, *, require_final_obs: bool) -> None:
        super().__init__(base, observations)
        self.num_envs = observations.num_envs
        self._is_sure = base.is_known
        self._require_final_obs = require_final_obs
        # The older name is that of other classes; there, it is a key of sub-environments.
        self._obs_keys = FINAL_OBS_KEYS[:1] if self._is_sure else FINAL_OBS_KEYS
        self._repeats = RepeatWatch()

    def reset(self, infos: list[Info]) -> None:
        """Refuse infos that would be mistaken for last observations."""
        for info in infos:
            refuse_final_keys(info, (*self._obs_keys, FINAL_INFO))

    def transition(self, step: Stepped) -> Transition:
        """The step; the infos of ended rows are divided into those of step and reset."""
        finals = [key for key in (*self._obs_keys, FINAL_INFO) if key in step.infos]
        if finals:
            refuse_mixed_final(step.infos, self.num_envs)
        # A mask belongs to its key. Without that key, it is not a mask.
        reserved = {*finals, *(f"_{key}" for key in finals)}
        top = {key: value for key, value in step.infos.items() if key not in reserved}
        row_infos = split_step_infos(top, step.truncated)
        reset_infos: dict[int, Info] = {}
        if finals and (self._is_sure or self._base.holds_single_envs):
            self._keep_own_keys(
                {k: v for k, v in step.infos.items() if k in reserved}, step, row_infos
            )
        if step.ended.any():
            rows = np.flatnonzero(step.ended)
            reset_infos = self._sort_infos(step, top, rows, row_infos)
        return Transition(*step[:4], row_infos, reset_infos)

    def _keep_own_keys(self, given: Info, step: Stepped, row_infos: list[Info]) -> None:
        """Keep keys such as `final_obs` in rows that have not ended: they are the row's own."""
        rows = np.flatnonzero(~step.ended)
        for i, own in zip(rows.tolist(), split_infos(given, self.num_envs, rows), strict=True):
            row_infos[i].update(own)

    def _sort_infos(
        self, step: Stepped, top: Info, rows: Rows, row_infos: list[Info]
    ) -> dict[int, Info]:
        """Give the ended rows the infos of their last step, and return those of their resets."""
        terminal = self._final_observations(step, rows)
        own, added = self._by_owner(step, top)
        reset_infos = split_infos(own, self.num_envs, rows)
        # Infos that a wrapper added in this step belong to the episode that has ended.
        added_infos = split_infos(added, self.num_envs, rows, without=(TERMINAL_OBSERVATION,))
        for i, final, extra in zip(
            rows.tolist(), self._final_infos(step.infos, rows), added_infos, strict=True
        ):
            final.pop(TERMINAL_OBSERVATION, None)
            if EPISODE in final and EPISODE in extra:
                raise ConversionError(
                    f"Expected one infos['episode'] in row {i}, got one from its sub-environment "
                    "and one from a vector wrapper: Stable-Baselines3 reads the return from it. "
                    "Remove one of the wrappers that write it, or give RecordEpisodeStatistics "
                    "another stats_key."
                )
            row_infos[i] = {**final, **extra, TRUNCATED: bool(step.truncated[i])}
            if i in terminal:
                row_infos[i][TERMINAL_OBSERVATION] = terminal[i]
        return dict(zip(rows.tolist(), reset_infos, strict=True))

    def _by_owner(self, step: Stepped, top: Info) -> tuple[Info, Info]:
        """The infos that the environment itself gave, and those that wrappers have added.

        A wrapper may add a key in some rows which the environment gave in others.
        """
        if step.own_keys is None:
            return top, {}
        own = {key: value for key, value in top.items() if key in step.own_keys}
        added = {key: value for key, value in top.items() if key not in step.own_keys}
        for key, before in step.own_keys.items():
            now = mask_of(top, key, self.num_envs) if key in top else None
            if before is not None and now is not None:
                own[f"_{key}"] = before
                if (more := now & ~before).any():
                    added |= {key: top[key], f"_{key}": more}
        return own, added

    def _final_observations(self, step: Stepped, rows: Rows) -> dict[int, Observation]:
        """The last observation of each ended row that has one, copied."""
        infos = step.infos
        key = next((key for key in self._obs_keys if key in infos), None)
        found: dict[int, Observation] = {}
        if key is not None:
            mask = mask_of(infos, key, self.num_envs)
            pick = self._observations.picker(infos[key], key)
            for i in rows.tolist():
                obs = pick(i) if mask is None or mask[i] else None
                if obs is not None:
                    found[i] = self._final(i, obs, step.observations)
        missing = [i for i in rows.tolist() if i not in found]
        self._check_missing(missing, step)
        return found

    def _check_missing(self, missing: list[int], step: Stepped) -> None:
        fatal = [i for i in missing if self._require_final_obs or step.truncated[i]]
        if fatal:
            ways = (
                "A truncated episode cannot be bootstrapped without it."
                if not self._require_final_obs
                else "If this environment only ever terminates and never truncates, pass "
                "require_final_obs=False to to_sb3."
            )
            raise MissingFinalObservationError(
                "Expected infos['final_obs'] to hold the last observation of rows "
                f"{shown(fatal)}, whose episodes ended in this step, as {self._base.env} resets in "
                f"the same step; got infos with the keys {shown(list(step.infos))}. Make the "
                f"environment return it, or build it in another autoreset mode. {ways}"
            )

    def _final(self, row: int, obs: Observation, batch: list[Array]) -> Observation:
        """Copy a last observation; refuse it if the reset has overwritten it."""
        base = self._base.env
        if isinstance(base, SyncVectorEnv):
            refuse_same_memory(row, held_observations(base)[row], obs)
        self._observations.check_shape(obs, f"the last observation of row {row}")
        final = self._observations.single(self._observations.to_numpy(obs), copy=True)
        self._repeats.note(row, self._observations, final, batch)
        return final

    def _final_infos(self, infos: VectorInfos, rows: Rows) -> list[Info]:
        value = infos.get(FINAL_INFO)
        if isinstance(value, Mapping):
            return split_infos(value, self.num_envs, rows)
        if isinstance(value, np.ndarray | list) and len(value) == self.num_envs:
            wrapped = {FINAL_INFO: np.array([*value, None], dtype=object)[:-1]}
            return [row[FINAL_INFO] or {} for row in split_infos(wrapped, self.num_envs, rows)]
        return [{} for _ in rows]


class Padded(Mode):
    """NEXT_STEP without a partial reset: the reset step is presented as the end of the episode.

    The last observation is an ordinary observation with `done=False`; the reset step that follows
    has `done=True`, reward 0, the last observation as `terminal_observation`,
    `TimeLimit.truncated` as it was, and is marked by `infos[i]["sb3compat.padding"]`.
    """

    def __init__(self, base: Base, observations: Observations) -> None:
        super().__init__(base, observations)
        # The rows whose end the next step presents, with the last observation and the truncation
        # flag.
        self._ended: dict[int, tuple[Observation, bool]] = {}

    def reset(self, infos: list[Info]) -> None:
        """Drop the endings that the next step would have presented."""
        self._ended = {}

    def transition(self, step: Stepped) -> Transition:
        """The step, with the endings of the step before."""
        if step.ended.any():
            _check_mode(step, self._base)
        none = np.zeros(self._observations.num_envs, np.bool_)
        row_infos = split_step_infos(step.infos, none)
        ended, truncated = none, none.copy()
        reset_infos: dict[int, Info] = {}
        for i, (final, was_truncated) in self._ended.items():
            reset_infos[i] = row_infos[i]
            del reset_infos[i][TRUNCATED]
            row_infos[i] = {
                PADDING: True,
                TRUNCATED: was_truncated,
                TERMINAL_OBSERVATION: final,
            }
            ended[i], truncated[i], step.rewards[i] = True, was_truncated, 0.0
        rows = np.flatnonzero(step.ended)
        finals = self._observations.rows(step.observations, rows)
        pairs = zip(finals, step.truncated[rows].tolist(), strict=True)
        self._ended = dict(zip(rows.tolist(), pairs, strict=True))
        return Transition(step.observations, step.rewards, ended, truncated, row_infos, reset_infos)


def _check_mode(step: Stepped, base: Base) -> None:
    """Refuse an ending that is reported as in SAME_STEP mode: its row is reset already."""
    given = [key for key in FINAL_OBS_KEYS if key in step.infos]
    if given and not base.is_known:  # else it is a key of the sub-environments
        raise AutoresetModeError(
            f"Expected {base.env} to return the last observation of an episode as the "
            f"observation of that step, got infos[{given[0]!r}], as environments in SAME_STEP "
            "mode do. If it is one, pass autoreset_mode='SameStep'. If not, rename that key."
        )
