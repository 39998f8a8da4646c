"""Drive any `VectorEnv` as a whole, through its own `step` and `reset`, vector wrappers included.

What differs between the autoreset modes is in `modes.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from gymnasium.vector import AsyncVectorEnv

from sb3compat._convert.actions import Actions
from sb3compat._convert.arrays import row_array
from sb3compat._convert.infos import FINAL_OBS_KEYS, split_infos
from sb3compat._convert.observations import Observations
from sb3compat._convert.options import groups_of
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Array,
    Flags,
    Info,
    Observation,
    Options,
    Rewards,
    Rows,
    Seeds,
    Transition,
    Value,
    VectorInfos,
)
from sb3compat._ipc import async_vector_env as workers
from sb3compat._to_sb3.rows import refuse_pending
from sb3compat._to_sb3.tap import (
    ROW_OPTIONS,
    BaseTap,
    MaskOptions,
    SeenReset,
    SeenStep,
)
from sb3compat._to_sb3.traits import check_seed
from sb3compat._to_sb3.wrappers import paused_videos
from sb3compat.errors import (
    AutoresetModeError,
    ConversionError,
    PartialResetError,
    UnsupportedEnvError,
    shown,
)

_NO_VECTORS = (
    " Stable-Baselines3 knows no vector rewards: scalarise them in a wrapper around the "
    "environment."
)


class Stepped(NamedTuple):
    """One step of a vector environment, its form checked.

    Attributes:
        observations: One array for each leaf of the space.
        rewards: float32 of shape `(n,)`.
        ended: Which rows' episodes ended.
        truncated: Which of them were truncated and not terminated as well.
        infos: The dict of arrays.
        own_keys: The info keys that the environment itself gave, not a wrapper; with their masks.
    """

    observations: list[Array]
    rewards: Rewards
    ended: Flags
    truncated: Flags
    infos: VectorInfos
    own_keys: Mapping[str, Flags | None]


class VectorSource:
    """A vector environment driven as a whole; the base of the three modes.

    Args:
        env: The environment with its wrappers; a `BaseTap` sits directly above the base.
        tap: The `BaseTap`.
        observations: The layout of the observations.
        actions: The layout of the actions.
        copy: Whether each step returns arrays of its own.
        fresh: Whether the environment itself returns new arrays with each step.
    """

    # Whether a row can be reset that the environment itself has not ended.
    _resets_any_row = False

    def __init__(
        self,
        env: AnyVectorEnv,
        tap: BaseTap,
        observations: Observations,
        actions: Actions,
        *,
        copy: bool,
        fresh: bool,
    ) -> None:
        self.env = env
        self.num_envs = env.num_envs
        self._tap = tap
        self._observations = observations
        self._actions = actions
        self._copy = copy and not fresh
        self._owned = copy or fresh
        # The workers, where there are any.
        self._async = tap.env if isinstance(tap.env, AsyncVectorEnv) else None
        self.seeds_rows = tap.base.seeds_rows
        self._mode_is_sure = tap.base.mode_is_sure
        self._sent: Action = None
        self._was_reset = False

    @property
    def busy(self) -> bool:
        """Whether workers are in the middle of a step, and can answer nothing else."""
        return self._async is not None and workers.is_stepping(self._async)

    @property
    def started(self) -> bool:
        """Whether a step was started here, or its start was interrupted."""
        return self._tap.started

    @property
    def broken(self) -> bool:
        """Whether a worker is lost, or a call was interrupted whose results may still come."""
        return self._tap.broken

    def check_options(self, options: Sequence[Options]) -> None:
        """Refuse options that this environment could not apply, and forget those that wait in it.

        Raises:
            ValueError: If they contain a `reset_mask`.
            PartialResetError: If they differ by row and rows cannot be reset one by one.
        """
        if any("reset_mask" in row for row in options):
            raise ValueError(
                "Expected options for the sub-environments, got options['reset_mask'], which "
                "Gymnasium's vector environments take as the rows to reset. SB3 resets all rows."
            )
        if not self._tap.can_reset_rows and len(groups_of(options)) > 1:
            raise PartialResetError(
                f"Expected the same options for all rows: {self._tap.env} cannot reset its rows "
                "one by one. Pass one dict, or register a partial reset for "
                f"{type(self._tap.env).__name__} with sb3compat.register_partial_reset."
            )
        self._tap.base.forget_options()

    def reset(self, seeds: Seeds, options: Sequence[Options]) -> tuple[list[Array], list[Info]]:
        """Reset all rows; in groups of equal options, if one call cannot pass different ones."""
        seed: Value = None
        if any(value is not None for value in seeds):
            seed = list(seeds) if self.seeds_rows else self._one_seed(seeds)
        groups = groups_of(options)
        if len(groups) == 1 or self._tap.base.resets_rows:
            batch, infos = self._reset_at_once(seed, options, uniform=len(groups) == 1)
        else:
            batch, infos = self._reset_in_groups(seed, options, groups)
        self._was_reset = True
        return batch, infos

    def check_started(self) -> None:
        """Refuse a first step where rows have ended, or where that is not known."""
        refuse_pending(self._tap.env, self._tap.pending())

    def send(self, actions: list[Array]) -> None:
        """Start the step if the environment can, or keep the batch of actions for `receive`.

        With vector wrappers in between it cannot: their `step` is one call.
        """
        if self._async is not None:
            workers.check_ready(self._async)
        self._sent = self._actions.pack(actions)
        if self.env is self._tap:
            self._tap.start(self._sent)

    def receive(self) -> Transition:
        """Step all rows, and reset the rows that end."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Forget the actions, or drop the step that was started with them."""
        self._sent = None
        self._tap.cancel()

    def render(self) -> Value:
        """The frames of the environment, as its wrappers return them."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        if self._async is not None:
            # Also after a step that raised half-way, whose results will never come.
            workers.close(self._async)
        self.env.close()

    def _step(self) -> Stepped:
        """Step the environment and check the form of everything that it returned."""
        result, seen = self._tap.watch_step(lambda: self.env.step(self._sent))
        self._check_passage(seen)
        if not (isinstance(result, tuple) and len(result) == 5):
            raise ConversionError(
                f"Expected {self.env}.step to return (observations, rewards, terminations, "
                f"truncations, infos), got {_form(result)}."
            )
        obs, rewards, first, second, given = result
        infos = _checked_infos(given)
        terminated = self._flags(first, "terminations")
        truncated = self._flags(second, "truncations")
        ended = terminated | truncated
        if self.env is not self._tap and seen.ended is not None:
            self._check_endings(ended, seen.ended)
        observations = self._batch(obs, copy=self._copy)
        return Stepped(
            observations,
            row_array(rewards, self.num_envs, "rewards", _NO_VECTORS).astype(np.float32),
            ended,
            truncated & ~terminated,
            infos,
            seen.info_keys,
        )

    def _check_passage(self, seen: SeenStep) -> None:
        """Refuse wrappers that reset the environment within a step, or step it more than once."""
        if seen.resets:
            raise UnsupportedEnvError(
                f"Expected a step of {self.env} not to reset {self._tap.env}, but a wrapper has "
                "done so: the last observations are lost, and rows would be reset twice. Remove "
                "that wrapper: to_sb3 resets the rows that have ended, in every autoreset mode."
            )
        if seen.steps != 1:
            raise UnsupportedEnvError(
                f"Expected one step of {self.env} to be one step of {self._tap.env}, through the "
                f"wrappers' attribute `env`; it was {seen.steps}. A wrapper in between steps more "
                "than once, or keeps a reference of its own to the environment."
            )

    def _check_endings(self, dones: Flags, below: tuple[Value, Value]) -> None:
        """Refuse wrappers that hide an ending, or invent one where the rows reset by themselves."""
        ended = self._flags(below[0], "terminations") | self._flags(below[1], "truncations")
        wrong = ended & ~dones if self._resets_any_row else ended != dones
        if wrong.any():
            raise UnsupportedEnvError(
                f"Expected {self.env} to end the episodes that {self._tap.env} ends, got "
                f"dones={shown(dones.tolist())} from {shown(ended.tolist())}: rows "
                f"{shown(np.flatnonzero(wrong).tolist())} would end for SB3 and not for the "
                "environment, or the other way round. End episodes in wrappers around the "
                "sub-environments instead."
            )

    def _batch(self, obs: Observation, *, copy: bool = False) -> list[Array]:
        return self._observations.batch(obs, copy=copy, source=self.env)

    def _flags(self, flags: object, name: str) -> Flags:
        return row_array(flags, self.num_envs, name).astype(np.bool_, copy=False)

    def _reset(
        self, seed: Value, options: Options | None
    ) -> tuple[Observation, VectorInfos, SeenReset]:
        """Reset through the wrappers, and check the form of the result."""
        result, seen = self._tap.watch_reset(lambda: self.env.reset(seed=seed, options=options))
        if not (isinstance(result, tuple) and len(result) == 2):
            raise ConversionError(
                f"Expected {self.env}.reset to return (observations, infos), got {_form(result)}."
            )
        return result[0], _checked_infos(result[1]), seen

    def _reset_at_once(
        self, seed: object, options: Sequence[Options], *, uniform: bool
    ) -> tuple[list[Array], list[Info]]:
        shared: Options = dict(options[0]) if uniform else {}
        if any(options):
            shared[ROW_OPTIONS] = options
        obs, infos, seen = self._reset(seed, shared or None)
        if any(options) and seen.row_options is None:
            raise self._not_handed_on("options")
        batch = self._batch(obs, copy=self._copy)
        return batch, split_infos(infos, self.num_envs)

    def _one_seed(self, seeds: Seeds) -> int:
        """The seed of the first row, from which the environment derives the others."""
        first = seeds[0]
        if first is None or list(seeds) != [first + i for i in range(self.num_envs)]:
            raise ConversionError(
                f"Expected seeds that count up from the first one, which is all that "
                f"{self._tap.env} takes, got seeds={shown(list(seeds))}. Nothing was reset."
            )
        check_seed(self._tap.env, first)
        return operator.index(first)

    def _reset_in_groups(
        self, seed: Value, options: Sequence[Options], groups: list[Rows]
    ) -> tuple[list[Array], list[Info]]:
        one_seed = seed is not None and not self.seeds_rows
        if one_seed or not self._was_reset:
            # One seed is for all rows. And some environments can only reset single rows after a
            # reset of all.
            self._reset(seed, None)
            self._was_reset = True
            seed = None if one_seed else seed
        batch: list[Array] = []
        row_infos: list[Info] = [{} for _ in range(self.num_envs)]
        for rows in groups:
            mask = np.zeros(self.num_envs, np.bool_)
            mask[rows] = True
            obs, infos = self._reset_rows(mask, seed, options[int(rows[0])])
            batch = batch or self._observations.batch(obs, copy=True)
            self._assign(batch, rows, obs)
            for i, info in zip(rows, split_infos(infos, self.num_envs, rows), strict=True):
                row_infos[i] = info
        return batch, row_infos

    def _reset_rows(
        self, mask: Flags, seed: object, options: Options
    ) -> tuple[Observation, VectorInfos]:
        """Reset some rows through the wrappers, and check that the mask has reached the base."""
        with paused_videos(self.env, mask):
            obs, infos, seen = self._reset(seed, MaskOptions(options, reset_mask=mask))
        if seen.mask is None:
            raise self._not_handed_on("options['reset_mask']")
        return obs, infos

    def _not_handed_on(self, what: str) -> PartialResetError:
        return PartialResetError(
            f"Expected {what} to reach {self._tap.env}, but a wrapper in {self.env} did not hand "
            "it on, and all rows were reset without it. Let its reset pass `options` to the "
            "environment inside, or build the environment with "
            "autoreset_mode=AutoresetMode.SAME_STEP."
        )

    def _check_mode(self, infos: VectorInfos, ended: Flags) -> None:
        """Refuse an ending that is reported as in SAME_STEP mode: its row is reset already."""
        if self._mode_is_sure:
            return  # then it is a key of the sub-environments
        given = [key for key in FINAL_OBS_KEYS if key in infos]
        if given and ended.any():
            raise AutoresetModeError(
                f"Expected {self._tap.env} to return the last observation of an episode as the "
                f"observation of that step, got infos[{given[0]!r}], as environments in SAME_STEP "
                "mode do. If it is one, pass autoreset_mode='SameStep'. If not, rename that key."
            )

    def _check_others(self, batch: list[Array], rows: Rows, reset_obs: Observation) -> None:
        """Refuse a wrapper that took a masked reset for one of all rows, if that can be seen.

        It can be seen where the environment itself returns the other rows unchanged.
        """
        if self.env is self._tap or not self._tap.base.resets_rows:
            return
        others = np.setdiff1d(np.arange(self.num_envs), rows)
        after = self._batch(reset_obs)
        for array, values in zip(batch, after, strict=True):
            if not np.array_equal(
                array[others], values[others], equal_nan=array.dtype.kind in "fc"
            ):
                raise PartialResetError(
                    f"Expected a reset of the rows {shown(rows.tolist())} to leave the "
                    f"observations of all others as they were, but it has changed them: a wrapper "
                    f"in {self.env} resets its state for all rows. Let it reset its "
                    "state for the rows in options['reset_mask'] only, or build the "
                    "environment with autoreset_mode=AutoresetMode.SAME_STEP."
                )

    def _assign(self, batch: list[Array], rows: Rows, obs: Observation) -> None:
        source = self._batch(obs)
        for array, values in zip(batch, source, strict=True):
            if array.dtype != values.dtype:
                raise ConversionError(
                    f"Expected {self.env} to give observations of one dtype, got {array.dtype} and "
                    f"{values.dtype}: a wrapper changes the observations of steps and those of "
                    "resets in different ways."
                )
            array[rows] = values[rows]


def _form(result: Value) -> str:
    length = len(result) if isinstance(result, Sequence) else "?"
    return f"{type(result).__name__} of length {length}"


def _checked_infos(infos: object) -> VectorInfos:
    if not isinstance(infos, Mapping):
        raise ConversionError(
            f"Expected infos to be a dict of arrays, got {type(infos).__name__}. to_sb3 makes "
            "the list of dicts itself: remove the wrapper that does so."
        )
    return infos
