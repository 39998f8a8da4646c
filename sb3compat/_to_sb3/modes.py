"""How the end of an episode crosses the border: one small object for each source mode.

These drive any `VectorEnv` through its own `step` and `reset`, vector wrappers included:

- `SameStep`: the environment hands out the last observation and has reset already.
- `ResetWithin`: NEXT_STEP with a partial reset, and DISABLED. The rows that ended are reset
  inside the step, which also cancels the autoreset pending in NEXT_STEP mode.
- `Padded`: NEXT_STEP without a partial reset. Opt-in, as its stream is not the exact one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from sb3compat._convert.arrays import to_numpy
from sb3compat._convert.infos import (
    TERMINAL_OBSERVATION,
    TRUNCATED,
    Info,
    mask_of,
    split_infos,
    split_step_infos,
)
from sb3compat._to_sb3.rows_sync import (
    RepeatWatch,
    Transition,
    refuse_final_keys,
    refuse_same_memory,
)
from sb3compat._to_sb3.tap import ROW_OPTIONS, BaseTap, MaskOptions, groups_of, resets_rows_itself
from sb3compat._to_sb3.wrappers import paused_videos
from sb3compat._upstream import async_vector_env as workers
from sb3compat.errors import (
    AutoresetModeError,
    ConversionError,
    MissingFinalObservationError,
    PartialResetError,
    UnsupportedEnvError,
)

if TYPE_CHECKING:
    from sb3compat._convert.observations import Actions, Array, Observations

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

PADDING = "sb3compat.padding"

_FINAL_OBS = ("final_obs", "final_observation")
_FINAL_INFO = "final_info"
_FINAL_KEYS = frozenset(prefix + key for key in (*_FINAL_OBS, _FINAL_INFO) for prefix in ("", "_"))


class VectorSource:
    """A vector environment driven as a whole; the base of the three modes.

    Args:
        env: The environment with its wrappers; a `BaseTap` sits directly above the base.
        tap: That tap.
        observations: The layout of the observations.
        actions: The layout of the actions.
        copy: Whether each step returns arrays of its own.
        fresh: Whether the environment itself returns new arrays with each step.
        seed_rows: Whether `reset` takes a list of seeds, one for each row.
    """

    # Whether a row can be reset that the environment itself has not ended.
    _resets_any_row = False

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        tap: BaseTap,
        observations: Observations,
        actions: Actions,
        *,
        copy: bool,
        fresh: bool,
        seed_rows: bool,
    ) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self._tap = tap
        self._observations = observations
        self._actions = actions
        self._copy = copy and not fresh
        self._owned = copy or fresh
        self._seed_rows = seed_rows
        self._sent: Any = None
        self._was_reset = False

    def check_options(self, options: Sequence[dict[str, Any]]) -> None:
        """Refuse options that this environment could not apply to its rows.

        Raises:
            ValueError: If they contain a `reset_mask`.
            PartialResetError: If they differ by row and rows cannot be reset one by one.
        """
        if any("reset_mask" in row for row in options):
            raise ValueError(
                "Expected options for the sub-environments, got options['reset_mask'], which "
                "Gymnasium's vector environments take as the rows to reset. SB3 resets all rows."
            )
        possible = self._tap.partial_reset is not None or resets_rows_itself(self._tap.env)
        if not possible and len(groups_of(options)) > 1:
            raise PartialResetError(
                f"Expected the same options for all rows: {self._tap.env} cannot reset its rows "
                "one by one. Pass one dict, or register a partial reset for "
                f"{type(self._tap.env).__name__} with sb3compat.register_partial_reset."
            )

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[list[Array], list[Info]]:
        """Reset all rows; in groups where their options differ and it cannot be done at once."""
        seed: Any = None
        if any(value is not None for value in seeds):
            seed = list(seeds) if self._seed_rows else seeds[0]
        groups = groups_of(options)
        if len(groups) == 1 or resets_rows_itself(self._tap.env):
            shared: dict[str, Any] = dict(options[0]) if len(groups) == 1 else {}
            if any(options):
                shared[ROW_OPTIONS] = options
            self._tap.row_options = None
            obs, infos = self._reset(seed, shared or None)
            if any(options) and self._tap.row_options is None:
                raise self._not_handed_on("options")
            self._was_reset = True
            batch = self._observations.batch(obs, copy=self._copy)
            return batch, split_infos(infos, self.num_envs)
        one_seed = seed is not None and not self._seed_rows
        if one_seed or not self._was_reset:
            # One seed is one for all rows. And some environments can only reset some rows once
            # all have been reset.
            self._reset(seed, None)
            self._was_reset = True
            seed = None if one_seed else seed
        batch = self._observations.empty()
        row_infos: list[Info] = [{} for _ in range(self.num_envs)]
        for rows in groups:
            mask = np.zeros(self.num_envs, np.bool_)
            mask[rows] = True
            obs, infos = self._reset_rows(mask, seed, options[int(rows[0])])
            self._assign(batch, rows, obs)
            for i, info in zip(rows, split_infos(infos, self.num_envs, rows), strict=True):
                row_infos[i] = info
        return batch, row_infos

    def send(self, actions: list[Array]) -> None:
        """Start the step if the environment can, or keep the batch of actions for `receive`.

        With vector wrappers in between it cannot: their `step` is one call.
        """
        if isinstance(self._tap.env, AsyncVectorEnv):
            workers.check_ready(self._tap.env)
        self._sent = self._actions.pack(actions)
        if self.env is self._tap:
            self._tap.start(self._sent)

    def receive(self) -> Transition:
        """Step all rows, and reset those that end."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Forget the actions kept, or the step that they have started."""
        self._sent = None
        self._tap.cancel()

    def render(self) -> Any:
        """What the environment and its wrappers render."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        if isinstance(self._tap.env, AsyncVectorEnv):
            # Also after a step that raised half-way, whose results will never come.
            workers.close(self._tap.env)
        self.env.close()

    def _step(
        self, *, copy: bool
    ) -> tuple[list[Array], npt.NDArray[np.float32], Flags, Flags, Mapping[str, Any]]:
        """Step the environment and check the form of everything that it returned.

        Returns:
            The observations, rewards and dones; which rows were truncated and no more than that;
            and the infos.
        """
        before, resets = self._tap.steps, self._tap.foreign_resets
        result = self.env.step(self._sent)
        if self._tap.foreign_resets != resets:
            raise UnsupportedEnvError(
                f"Expected a step of {self.env} not to reset {self._tap.env}, but a wrapper has "
                "done so: the last observations are lost, and rows would be reset twice. Remove "
                "that wrapper: to_sb3 resets the rows that have ended, in every autoreset mode."
            )
        if self._tap.steps != before + 1:
            raise UnsupportedEnvError(
                f"Expected one step of {self.env} to be one step of {self._tap.env}, through the "
                f"wrappers' attribute `env`; it was {self._tap.steps - before}. A wrapper in "
                "between steps more than once, or keeps a reference of its own to the environment."
            )
        if not (isinstance(result, tuple) and len(result) == 5):
            raise ConversionError(
                f"Expected {self.env}.step to return (observations, rewards, terminations, "
                f"truncations, infos), got {type(result).__name__} of length "
                f"{len(result) if isinstance(result, Sequence) else '?'}."
            )
        obs, rewards, first, second, given = result
        infos = self._checked_infos(given)
        terminated = self._flags(first, "terminations")
        truncated = self._flags(second, "truncations")
        dones = terminated | truncated
        if self.env is not self._tap:
            self._check_endings(dones)
        observations = self._observations.batch(obs, copy=copy)
        return observations, self._rewards(rewards), dones, truncated & ~terminated, infos

    def _check_endings(self, dones: Flags) -> None:
        """Refuse wrappers that hide an ending, or invent one where the rows reset by themselves."""
        if self._tap.ended is None:
            return
        first, second = self._tap.ended
        ended = self._flags(first, "terminations") | self._flags(second, "truncations")
        wrong = ended & ~dones if self._resets_any_row else ended != dones
        if wrong.any():
            raise UnsupportedEnvError(
                f"Expected {self.env} to end the episodes that {self._tap.env} ends, got "
                f"dones={dones.tolist()} from {ended.tolist()}: rows "
                f"{np.flatnonzero(wrong).tolist()} would be reset, or not, without SB3 knowing. "
                "End episodes in wrappers around the sub-environments instead."
            )

    def _reset(self, seed: Any, options: dict[str, Any] | None) -> tuple[Any, Mapping[str, Any]]:
        """Reset through the wrappers, and check the form of what comes back."""
        self._tap.adapting = True
        try:
            result: Any = self.env.reset(seed=seed, options=options)
        finally:
            self._tap.adapting = False
        if not (isinstance(result, tuple) and len(result) == 2):
            raise ConversionError(
                f"Expected {self.env}.reset to return (observations, infos), got "
                f"{type(result).__name__} of length "
                f"{len(result) if isinstance(result, Sequence) else '?'}."
            )
        return result[0], self._checked_infos(result[1])

    def _rewards(self, rewards: Any) -> npt.NDArray[np.float32]:
        array = np.asarray(to_numpy(rewards))
        if array.shape != (self.num_envs,):
            raise ConversionError(
                f"Expected rewards of shape ({self.num_envs},), one number for each row, got "
                f"rewards.shape={array.shape}. Stable-Baselines3 knows no vector rewards: "
                "scalarise them in a wrapper around the environment."
            )
        return array.astype(np.float32)

    def _flags(self, flags: Any, name: str) -> Flags:
        array = np.asarray(to_numpy(flags))
        if array.shape != (self.num_envs,):
            raise ConversionError(
                f"Expected {name} of shape ({self.num_envs},), got {name}.shape={array.shape}."
            )
        return array.astype(np.bool_, copy=False)

    def _checked_infos(self, infos: Any) -> Mapping[str, Any]:
        if not isinstance(infos, Mapping):
            raise ConversionError(
                f"Expected infos to be a dict of arrays, got {type(infos).__name__}. to_sb3 makes "
                "the list of dicts itself: remove the wrapper that does so."
            )
        return infos

    def _reset_rows(self, mask: Flags, seed: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        """Reset some rows through the wrappers, and make sure that the request got through."""
        self._tap.reset_mask = None
        with paused_videos(self.env, mask):
            result = self._reset(seed, MaskOptions(options, reset_mask=mask))
        if self._tap.reset_mask is None:
            raise self._not_handed_on("options['reset_mask']")
        return result

    def _not_handed_on(self, what: str) -> PartialResetError:
        return PartialResetError(
            f"Expected {what} to reach {self._tap.env}, but a wrapper in {self.env} did not hand "
            "it on, and all rows were reset without. Let its reset pass `options` to the "
            "environment inside, or build the environment with "
            "autoreset_mode=AutoresetMode.SAME_STEP."
        )

    def _check_mode(self, infos: Mapping[str, Any], dones: Flags) -> None:
        """Refuse an ending as only SAME_STEP environments report it: the rows are reset already."""
        given = [key for key in _FINAL_OBS if key in infos]
        if given and dones.any():
            raise AutoresetModeError(
                f"Expected {self._tap.env} to return the last observation of an episode as the "
                f"observation of that step, got infos[{given[0]!r}], as environments in SAME_STEP "
                "mode do. If it is one, pass autoreset_mode='SameStep'."
            )

    def _check_others(self, batch: list[Array], rows: Rows, reset_obs: Any) -> None:
        """Refuse a wrapper that took the reset of some rows for one of all, where it shows.

        Only Gymnasium's own two are known to hand out the other rows unchanged.
        """
        if self.env is self._tap or not resets_rows_itself(self._tap.env):
            return
        others = np.setdiff1d(np.arange(self.num_envs), rows)
        after = self._observations.batch(reset_obs, copy=False)
        for array, values in zip(batch, after, strict=True):
            if not np.array_equal(
                array[others], values[others], equal_nan=array.dtype.kind in "fc"
            ):
                raise PartialResetError(
                    f"Expected a reset of the rows {rows.tolist()} to leave the observations of "
                    f"all others as they were, but it has changed them: a wrapper in {self.env} "
                    "resets its state for all rows. Let it heed options['reset_mask'], or build "
                    "the environment with autoreset_mode=AutoresetMode.SAME_STEP."
                )

    def _assign(self, batch: list[Array], rows: Rows, obs: Any) -> None:
        source = self._observations.batch(obs, copy=False)
        for array, values in zip(batch, source, strict=True):
            array[rows] = values[rows]


class ResetWithin(VectorSource):
    """NEXT_STEP with a partial reset, and DISABLED: the step resets the rows that ended."""

    _resets_any_row = True

    def receive(self) -> Transition:
        """Step, take what the step said, then reset the rows that ended."""
        obs, rewards, dones, truncated, infos = self._step(copy=self._copy)
        self._check_mode(infos, dones)
        row_infos = split_step_infos(infos, truncated)
        reset_infos: dict[int, Info] = {}
        (rows,) = dones.nonzero()
        if len(rows):
            for i, final in zip(rows.tolist(), self._observations.rows(obs, rows), strict=True):
                row_infos[i][TERMINAL_OBSERVATION] = final
            if not self._owned:  # what is the environment's own is not written to
                obs = [array.copy() for array in obs]
            reset_obs, infos = self._reset_rows(dones.copy(), None, {})
            self._check_others(obs, rows, reset_obs)
            self._assign(obs, rows, reset_obs)
            split = split_infos(infos, self.num_envs, rows)
            reset_infos = dict(zip(rows.tolist(), split, strict=True))
        return Transition(obs, rewards, dones, row_infos, reset_infos)


class SameStep(VectorSource):
    """SAME_STEP: the last observation comes in the infos, and the rows are reset already."""

    def __init__(self, *args: Any, require_final_obs: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._require_final_obs = require_final_obs
        self._repeats = RepeatWatch()

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""
        batch, infos = super().reset(seeds, options)
        for info in infos:
            refuse_final_keys(info)
        return batch, infos

    def receive(self) -> Transition:
        """Step, and sort the infos of ended rows into those of the step and of the reset."""
        obs, rewards, dones, flags, infos = self._step(copy=self._copy)
        top = {key: value for key, value in infos.items() if key not in _FINAL_KEYS}
        if not dones.any():
            return Transition(obs, rewards, dones, split_step_infos(top, flags), {})

        rows = np.flatnonzero(dones)
        terminal = self._final_observations(infos, rows, flags, obs)
        row_infos = split_step_infos(top, flags)
        own = self._tap.info_keys
        reset_infos = split_infos({k: v for k, v in top.items() if k in own}, self.num_envs, rows)
        # What wrappers added in this step speaks of the episode that has ended.
        added = {k: v for k, v in top.items() if k not in own}
        added_infos = split_infos(added, self.num_envs, rows, without=(TERMINAL_OBSERVATION,))
        for i, final, extra in zip(
            rows.tolist(), self._final_infos(infos, rows), added_infos, strict=True
        ):
            final.pop(TERMINAL_OBSERVATION, None)
            row_infos[i] = {**final, **extra, TRUNCATED: bool(flags[i])}
            if i in terminal:
                row_infos[i][TERMINAL_OBSERVATION] = terminal[i]
        by_row = dict(zip(rows.tolist(), reset_infos, strict=True))
        return Transition(obs, rewards, dones, row_infos, by_row)

    def _final_observations(
        self, infos: Mapping[str, Any], rows: Rows, truncated: Flags, batch: list[Array]
    ) -> dict[int, Any]:
        """The last observation of each ended row that has one, copied."""
        key = next((key for key in _FINAL_OBS if key in infos), None)
        found: dict[int, Any] = {}
        if key is not None:
            mask = mask_of(infos, key, self.num_envs)
            pick = self._observations.picker(infos[key], key)
            for i in rows.tolist():
                obs = pick(i) if mask is None or mask[i] else None
                if obs is not None:
                    found[i] = self._final(i, obs, batch)
        missing = [i for i in rows.tolist() if i not in found]
        fatal = [i for i in missing if self._require_final_obs or truncated[i]]
        if fatal:
            ways = (
                "A truncated episode cannot be bootstrapped without it."
                if not self._require_final_obs
                else "If this environment only ever terminates and never truncates, pass "
                "require_final_obs=False to to_sb3."
            )
            raise MissingFinalObservationError(
                f"Expected infos['final_obs'] to hold the last observation of rows {fatal}, whose "
                f"episodes ended in this step, as {self._tap.env} resets in the same step; got "
                f"infos with the keys {list(infos)}. Make the environment return it, or build it "
                f"in another autoreset mode. {ways}"
            )
        return found

    def _final(self, row: int, obs: Any, batch: list[Array]) -> Any:
        """A last observation, copied, if it is still the last one."""
        base = self._tap.env
        if isinstance(base, SyncVectorEnv):
            refuse_same_memory(self._observations, row, base._env_obs[row], obs)
        final = self._observations.single(self._observations.to_numpy(obs), copy=True)
        self._observations.check_shape(final, f"the last observation of row {row}")
        self._repeats.note(row, self._observations, final, batch)
        return final

    def _final_infos(self, infos: Mapping[str, Any], rows: Rows) -> list[Info]:
        value = infos.get(_FINAL_INFO)
        if isinstance(value, Mapping):
            return split_infos(value, self.num_envs, rows)
        if isinstance(value, np.ndarray | list) and len(value) == self.num_envs:
            wrapped = {_FINAL_INFO: np.array([*value, None], dtype=object)[:-1]}
            return [row[_FINAL_INFO] or {} for row in split_infos(wrapped, self.num_envs, rows)]
        return [{} for _ in rows]


class Padded(VectorSource):
    """NEXT_STEP as it comes: the reset step is delivered as the one with which an episode ends.

    The last observation is an ordinary observation with `done=False`; the reset step that follows
    has `done=True`, reward 0, the last observation as `terminal_observation`,
    `TimeLimit.truncated` as it was, and is marked by `infos[i]["sb3compat.padding"]`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ended: dict[int, tuple[Any, bool]] = {}

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[list[Array], list[Info]]:
        """Reset all rows; an ending still to be delivered is dropped, as its episode is over."""
        result = super().reset(seeds, options)
        self._ended = {}
        return result

    def receive(self) -> Transition:
        """Step, and deliver the endings of the step before."""
        obs, rewards, ended, truncated, infos = self._step(copy=self._copy)
        self._check_mode(infos, ended)
        row_infos = split_step_infos(infos, np.zeros(self.num_envs, np.bool_))
        dones = np.zeros(self.num_envs, np.bool_)
        reset_infos: dict[int, Info] = {}
        for i, (final, was_truncated) in self._ended.items():
            reset_infos[i] = row_infos[i]
            del reset_infos[i][TRUNCATED]
            row_infos[i] = {
                PADDING: True,
                TRUNCATED: was_truncated,
                TERMINAL_OBSERVATION: final,
            }
            dones[i], rewards[i] = True, 0.0
        rows = np.flatnonzero(ended)
        finals = zip(self._observations.rows(obs, rows), truncated[rows].tolist(), strict=True)
        self._ended = dict(zip(rows.tolist(), finals, strict=True))
        return Transition(obs, rewards, dones, row_infos, reset_infos)
