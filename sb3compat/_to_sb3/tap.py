"""`BaseTap`: a wrapper directly above the base environment, below every vector wrapper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorWrapper

from sb3compat._convert.arrays import to_numpy
from sb3compat._convert.infos import mask_of
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    AnyWrapper,
    Flags,
    Options,
    Value,
    VectorInfos,
    VectorResetResult,
    VectorStepResult,
)
from sb3compat._ipc import async_vector_env as workers
from sb3compat._to_sb3.bases import base_of
from sb3compat._to_sb3.partial_reset import PartialReset, pending_in, reset_with_mask
from sb3compat._to_sb3.rows import reset_kwargs
from sb3compat._to_sb3.split_step import halves_of, is_async, whole_call
from sb3compat._to_sb3.traits import EndingWatch

# The key under which options for each row travel down to the tap.
ROW_OPTIONS = "sb3compat.row_options"


class MaskOptions(dict[str, Any]):
    """Options that keep their mask when a wrapper pops it.

    Gymnasium's wrappers and environments share one options dict and each pops `reset_mask` from
    it. The second one then sees no mask, and takes the reset for one of all rows
    (`RecordEpisodeStatistics` then forgets the running episodes).
    """

    def pop(self, key: str, *default: Any) -> Any:
        """Like `dict.pop`, but the mask stays."""
        return self[key] if key == "reset_mask" and key in self else super().pop(key, *default)


class SeenStep(NamedTuple):
    """The calls that reached the base environment while the outermost wrapper was stepped.

    Attributes:
        steps: How often the environment was stepped.
        resets: How often a wrapper has reset it.
        ended: The terminations and truncations of the last of those steps; None if it did not
            return five values.
        info_keys: The info keys that the environment itself gave last, each with a copy of its
            mask; None where it has none.
    """

    steps: int
    resets: int
    ended: tuple[Value, Value] | None
    info_keys: Mapping[str, Flags | None]


class SeenReset(NamedTuple):
    """The reset that reached the base environment while the outermost wrapper was reset.

    Attributes:
        mask: The rows to reset; None for all, or if no reset arrived.
        row_options: The options of each row, if they arrived.
    """

    mask: Flags | None
    row_options: Sequence[Options] | None


_NO_STEP = SeenStep(0, 0, None, {})


class BaseTap(AnyWrapper):
    """Seated directly above the base environment, below every vector wrapper.

    It passes a masked reset that arrives through the wrappers on to the registered function. It
    also records which info keys the environment itself gave: all others were added by wrappers.
    """

    def __init__(self, env: AnyVectorEnv) -> None:
        super().__init__(env)
        self._partial_reset: PartialReset | None = None
        self._mode = AutoresetMode.NEXT_STEP
        self._watch: EndingWatch | None = None
        self._copies = False
        self.base = base_of(env)
        self._halves = halves_of(env)
        own_methods = self._halves is None or not self.base.resets_rows
        if isinstance(env, AsyncVectorEnv) and own_methods and not workers.is_broken(env):
            workers.watch(env)
        self._step = _NO_STEP
        self._info_keys: Mapping[str, Flags | None] = {}
        # Only while the adapter resets: the user's own resets go straight to the environment.
        self._reset: SeenReset | None = None

    def configure(
        self,
        partial_reset: PartialReset | None,
        mode: AutoresetMode,
        watch: EndingWatch | None,
        *,
        copies: bool,
    ) -> None:
        """Set what the adapter has found out about the environment and its wrappers.

        Args:
            partial_reset: How to reset some of its rows.
            mode: Its autoreset mode.
            watch: What looks at its endings, if anything has to.
            copies: Whether to copy the observations of an environment built with copy=False, as an
                observation wrapper may write into the arrays that it gets.
        """
        self._partial_reset, self._mode, self._copies = partial_reset, mode, copies
        self._watch = watch

    @property
    def can_reset_rows(self) -> bool:
        """Whether some rows can be reset, each with options of its own."""
        return self._partial_reset is not None or self.base.resets_rows

    def pending(self) -> Flags | None:
        """The rows that have ended and wait for a reset; None where that is not known."""
        known = self.base.pending()
        if known is not None:
            return known
        if self._mode != AutoresetMode.NEXT_STEP:
            # In DISABLED mode, to step such a row is an error of the environment.
            return np.zeros(self.num_envs, np.bool_)
        return pending_in(self._partial_reset, self.env)

    def watch_step(self, step: Callable[[], VectorStepResult]) -> tuple[VectorStepResult, SeenStep]:
        """Call the outermost wrapper's `step`: its result, and the calls that arrived here."""
        self._step = _NO_STEP
        return step(), self._step

    def watch_reset(
        self, reset: Callable[[], VectorResetResult]
    ) -> tuple[VectorResetResult, SeenReset]:
        """Call the outermost wrapper's `reset`: its result, and the reset that arrived here."""
        self._reset = SeenReset(None, None)
        try:
            return reset(), self._reset
        finally:
            self._reset = None

    @property
    def started(self) -> bool:
        """Whether a step was started here, or its start was interrupted."""
        return self.broken or (self._halves is not None and self._halves.started)

    @property
    def broken(self) -> bool:
        """Whether a worker is lost, or a call was interrupted whose results may still come."""
        return self.base.broken

    def start(self, actions: Action) -> None:
        """Start a step, if the environment can; `step` with the same actions finishes it."""
        if self._halves is not None:
            self._halves.start(actions)

    def cancel(self) -> None:
        """Finish a step that was started, and drop its results."""
        if self._halves is not None and self._halves.started:
            self._halves.finish()

    def reset(self, *, seed: Value = None, options: Options | None = None) -> VectorResetResult:
        """Reset all rows, or those under `options["reset_mask"]` by the registered function."""
        if self._reset is None:
            self._step = self._step._replace(resets=self._step.resets + 1)
            return self.env.reset(seed=seed, options=options)
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        row_options = options.pop(ROW_OPTIONS, None)
        env = self.env
        if isinstance(env, AsyncVectorEnv):
            workers.check_ready(env)
        result: VectorResetResult
        if self._drives_rows(mask):
            result = self._reset_row_by_row(mask, seed, options, row_options)
        elif mask is not None:
            result = whole_call(env, self._reset_rows, mask, seed, options)
        else:
            result = whole_call(env, env.reset, seed=seed, options=options or None)
            after_reset = getattr(self._partial_reset, "after_reset", None)
            if after_reset is not None:
                after_reset(env)
        self._reset = SeenReset(mask, row_options)
        # Rows are restarted once.
        self._step = self._step._replace(ended=None)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Mapping):
            self._info_keys = self._keys_of(result[1])
            if self._watch is not None:
                self._watch.reset(result[1])
        return result

    def step(self, actions: Action) -> VectorStepResult:
        """Step, and note the keys of the infos."""
        result: VectorStepResult
        if self._halves is None:
            result = whole_call(self.env, self.env.step, actions)
        else:
            if not self._halves.started:
                self._halves.start(actions)
            result = self._halves.finish()
        if self._copies:
            result = (deepcopy(result[0]), *result[1:])
        # The environment may return another form, from which a wrapper makes five values. Then the
        # keys of its last infos that could be read are taken for its own.
        whole = isinstance(result, tuple) and len(result) == 5
        if whole and isinstance(result[4], Mapping):
            self._info_keys = self._keys_of(result[4])
        ended = (result[2], result[3]) if whole else None
        if self._watch is not None and whole:
            self._watch.step(*result[2:])
        self._step = SeenStep(self._step.steps + 1, self._step.resets, ended, self._info_keys)
        return result

    def render(self) -> Value:
        """The frames as a tuple, as the interface has it.

        `CartPoleVectorEnv` returns a list, whose frames `RecordVideo.render` would add to the
        video.
        """
        if isinstance(self.env, AsyncVectorEnv) and is_async(self.env, "render"):
            return tuple(workers.call(self.env, "render", (), {}, range(self.num_envs)))
        frames: Value = self.env.render()
        return tuple(frames) if isinstance(frames, list) else frames

    def _drives_rows(self, mask: Flags | None) -> bool:
        """Whether the rows are reset one by one here, not by a function that a user registered."""
        by_user = self._partial_reset not in (None, reset_with_mask)
        return self.base.resets_rows and not (mask is not None and by_user)

    def _reset_rows(self, mask: Flags, seed: Value, options: Options) -> VectorResetResult:
        """Reset some rows; those that the environment itself has ended, as it does itself."""
        assert self._partial_reset is not None
        restart = getattr(self._partial_reset, "restart", None)
        if restart is not None and self._step.ended is not None and seed is None and not options:
            terminations, truncations = map(to_numpy, self._step.ended)
            result: VectorResetResult = restart(
                self.env, mask, np.logical_or(terminations, truncations)
            )
            return result
        return self._partial_reset(self.env, mask, seed=seed, options=options or None)

    def _reset_row_by_row(
        self,
        mask: Flags | None,
        seed: Value,
        options: Options,
        row_options: Sequence[Options] | None,
    ) -> VectorResetResult:
        n = self.num_envs
        if mask is not None:
            rows = np.flatnonzero(mask).tolist()
            return self.base.reset_rows(rows, [{}] * n, copy=self._copies)
        seeds = seed if isinstance(seed, Sequence) else [seed] * n
        if isinstance(seed, int | np.integer):
            seeds = [seed + i for i in range(n)]
        options_of = [options] * n if row_options is None else row_options
        kwargs = list(map(reset_kwargs, seeds, options_of))
        return self.base.reset_rows(None, kwargs, copy=self._copies)

    def _keys_of(self, infos: VectorInfos) -> Mapping[str, Flags | None]:
        masks = {key: mask_of(infos, key, self.num_envs) for key in infos}
        return {key: None if mask is None else mask.copy() for key, mask in masks.items()}

    def __getattr__(self, name: str) -> Any:
        # Wrappers read attributes that only the environment has, `self.env.envs` for instance.
        if name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def __repr__(self) -> str:
        return repr(self.env)

    def __del__(self) -> None:
        # Up to Gymnasium 1.2, a VectorEnv closes itself here; this one was opened by the user.
        pass


def wrappers_of(env: AnyVectorEnv) -> Iterator[AnyWrapper]:
    """The vector wrappers around an environment, the outermost first."""
    while isinstance(env, VectorWrapper):
        yield env
        env = env.env
