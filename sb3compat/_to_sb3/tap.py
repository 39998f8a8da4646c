"""`BaseTap`: a wrapper directly above the base environment, below every vector wrapper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, iterate

from sb3compat._convert.arrays import to_numpy
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    AnyWrapper,
    Flags,
    Info,
    Kwargs,
    Options,
    Value,
    VectorResetResult,
    VectorStepResult,
)
from sb3compat._to_sb3.partial_reset import PartialReset, pending_in, reset_with_mask
from sb3compat._to_sb3.rows import reset_kwargs
from sb3compat._to_sb3.traits import EndingWatch
from sb3compat._upstream import async_vector_env as workers
from sb3compat._upstream import sync_vector_env
from sb3compat._upstream.inherited import changed
from sb3compat._upstream.split_step import halves_of, is_async, whole_call
from sb3compat._upstream.unfinished import is_unfinished

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
        info_keys: The info keys that the environment itself gave last.
    """

    steps: int
    resets: int
    ended: tuple[Value, Value] | None
    info_keys: frozenset[str]


class SeenReset(NamedTuple):
    """The reset that reached the base environment while the outermost wrapper was reset.

    Attributes:
        mask: The rows to reset; None for all, or if no reset arrived.
        row_options: The options of each row, if they arrived.
    """

    mask: Flags | None
    row_options: Sequence[Options] | None


_NO_STEP = SeenStep(0, 0, None, frozenset())


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
        self._halves = halves_of(env)
        own_methods = self._halves is None or not resets_rows_itself(env)
        if isinstance(env, AsyncVectorEnv) and own_methods and not workers.is_broken(env):
            workers.watch(env)
        self._step = _NO_STEP
        self._info_keys: frozenset[str] = frozenset()
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
        return self._partial_reset is not None or resets_rows_itself(self.env)

    def pending(self) -> Flags | None:
        """The rows that have ended and wait for a reset; None where that is not known."""
        env, none = self.env, np.zeros(self.num_envs, np.bool_)
        if isinstance(env, SyncVectorEnv):
            return sync_vector_env.pending_autoresets(env)
        if self._mode != AutoresetMode.NEXT_STEP:
            return none  # in DISABLED mode, to step such a row is an error of the environment
        if isinstance(env, AsyncVectorEnv) and env.worker is None:
            none[workers.pending_autoresets(env, range(self.num_envs))] = True
            return none
        return pending_in(self._partial_reset, env)

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
        env = self.env
        return workers.is_broken(env) if isinstance(env, AsyncVectorEnv) else is_unfinished(env)

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
            self._info_keys = frozenset(result[1])
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
            self._info_keys = frozenset(result[4])
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
        return resets_rows_itself(self.env) and not (mask is not None and by_user)

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
        env: Any = self.env
        n = env.num_envs
        kwargs: list[Kwargs]
        if mask is None:
            seeds = [None] * n if seed is None else seed
            options_of = [options] * n if row_options is None else row_options
            rows = list(range(n))
            kwargs = [reset_kwargs(seeds[i], options_of[i]) for i in rows]
        else:
            rows = np.flatnonzero(mask).tolist()
            kwargs = [{}] * len(rows)
        return _reset_rows(env, rows, kwargs, copy=env.copy or self._copies)

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


def resets_rows_itself(env: AnyVectorEnv) -> bool:
    """Whether a tap above `env` resets its rows one by one, each with its own arguments.

    So it does for `SyncVectorEnv`, `AsyncVectorEnv`, and subclasses with the same reset methods.
    Their own masked reset passes one options dict to all rows, an empty one by default, where
    `DummyVecEnv`, like their own autoreset, passes nothing.
    """
    for cls in (SyncVectorEnv, AsyncVectorEnv):
        if isinstance(env, cls):
            return changed(env, cls, "reset", known=sync_vector_env.ADDS_INFO) is None
    return False


def _reset_rows(
    env: Any, rows: list[int], kwargs: Sequence[Kwargs], *, copy: bool
) -> VectorResetResult:
    """What a masked `env.reset` does, but with arguments for each row."""
    held: list[Value] | None = None
    results: Iterable[tuple[Value, Info]]
    if isinstance(env, SyncVectorEnv):
        sync_vector_env.forget_endings(env, rows)
        # One by one: the infos of a row are read below, before the next row is reset.
        results = (env.envs[i].reset(**row) for i, row in zip(rows, kwargs, strict=True))
        held, out = sync_vector_env.held_observations(env), sync_vector_env.shared_batch(env)
    else:
        results = workers.reset(env, rows, kwargs)
        out = workers.shared_batch(env)
        if len(out) and not workers.shares_memory(env):  # `iterate` takes no empty Dict or Tuple
            # Copied, as they are views of `out`, which is written to below.
            held = deepcopy(list(iterate(env.observation_space, out)))
    infos: Info = {}
    for i, (obs, info) in zip(rows, results, strict=True):
        if held is not None:
            held[i] = obs
        infos = sync_vector_env.add_info(env, infos, info, i)
    if held is not None:
        concatenate(env.single_observation_space, held, out)
    return (deepcopy(out) if copy else out), infos


def wrappers_of(env: AnyVectorEnv) -> Iterator[AnyWrapper]:
    """The vector wrappers around an environment, the outermost first."""
    while isinstance(env, VectorWrapper):
        yield env
        env = env.env
