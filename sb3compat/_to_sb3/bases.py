"""The environment inside all wrappers, stepped and reset as is known of its class.

Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv` hold single environments. So does the adapter to
Gymnasium, whose `VecEnv` may be any. Of all others, only the interface is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any
from weakref import WeakSet

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, iterate

from sb3compat._convert.arrays import to_numpy
from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Flags,
    HoldsVecEnv,
    Info,
    Kwargs,
    Options,
    VectorResetResult,
    VectorStepResult,
    holds_vec_env,
    inside_wrappers,
)
from sb3compat._ipc import async_vector_env as workers
from sb3compat._rows.commands import reset_result
from sb3compat._rows.subenvs import REACHING, AsyncCommands
from sb3compat._to_sb3.partial_reset import (
    EndingWatch,
    MaskPromise,
    PartialReset,
    attribute_of,
    partial_reset_of,
    reset_with_mask,
)
from sb3compat._to_sb3.rows import reset_kwargs
from sb3compat._upstream import sync_vector_env
from sb3compat._upstream.inherited import changed
from sb3compat.errors import ConversionError, PartialResetError, WorkerError, shown


class Base:
    """A vector environment of an unknown class, of which only the interface is known.

    Args:
        env: The environment, without wrappers.
        mode: Its autoreset mode; None where it is not to be stepped.
        partial_reset: How to reset some of its rows.
        wrapped: Whether there are wrappers around it.

    Attributes:
        env: That environment.
        cls: The class that we know, from which the environment derives.
        reset_methods: The methods of that class that `reset_each` replaces.
        is_known: Whether it overrides no method of the class that we know. If so, it ends episodes
            as its declared mode says, whatever its infos contain.
        resets_rows: Whether `reset_each` is implemented, and the environment does not override a
            reset.
        keeps_others: Whether a reset of some rows returns the observations of all others unchanged.
        own_keys: The info keys that the environment itself gave; None for all of them.
        flags: The terminations and truncations of the last step; None after a reset.
    """

    cls: type[Any] | None = None
    reset_methods: tuple[str, ...] = ("reset",)
    own_keys: Mapping[str, Flags | None] | None = None

    def __init__(
        self,
        env: Any,
        mode: AutoresetMode | None,
        partial_reset: PartialReset | None,
        wrapped: bool,
    ) -> None:
        self.env = env
        known = self.cls
        self.is_known = known is not None and changed(env, known) is None
        self.resets_rows = known is not None and changed(env, known, *self.reset_methods) is None
        self.flags: tuple[Any, Any] | None = None
        self.mode, self.partial_reset = mode, partial_reset
        promised = partial_reset is reset_with_mask and not self.resets_rows
        self._promise: MaskPromise | None = None
        if promised and partial_reset_of(env) is None:
            self._promise = MaskPromise(env, wrapped=wrapped)
        self.keeps_others = (
            self.resets_rows
            or self._promise is not None
            or getattr(partial_reset, "keeps_others", False)
        )
        watch = None if mode is None else attribute_of(env, "watch")
        self._watch: EndingWatch | None = None if watch is None else watch(env, mode)
        # Where endings are watched, the infos of resets are as well.
        restart_rows = getattr(partial_reset, "restart_rows", None)
        self.restart_rows = restart_rows if self._watch is None else None

    @property
    def holds_single_envs(self) -> bool:
        """Whether each row is a separate environment, which may return infos of any type."""
        return self.cls is not None

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""
        return self.holds_single_envs

    @property
    def hands_out_new_arrays(self) -> bool:
        """Whether the observations of a step share no memory with those of another."""
        return self.is_known and bool(getattr(self.env, "copy", True))

    @property
    def broken(self) -> bool:
        """Whether a worker is lost, or results of an interrupted call may still arrive."""
        return False

    def forget_options(self) -> None:
        """Discard options that were set inside for the next reset, as others replace them."""

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that steps or resets the environment."""
        return function(*args, **kwargs)

    def call_of_user(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method for the user, who has called it directly: nothing is refused."""
        return function(*args, **kwargs)

    def step(self, actions: Action, *args: Any, **kwargs: Any) -> VectorStepResult:
        """Step all rows, and check the form of the result.

        Args:
            actions: The batch of actions.
            *args: Further arguments, which a wrapper passes to an environment that takes them.
            **kwargs: The same.
        """
        self.flags = None
        result: VectorStepResult = checked("step", self._step(actions, *args, **kwargs), self.env)
        if self._watch is not None:
            self._watch.step(*result[2:])
        self.flags = result[2], result[3]
        if self._promise is not None:
            self._promise.step(result[0], *self.flags)
        return result

    def reset(self, seed: Any, options: Sequence[Options], **more: Any) -> VectorResetResult:
        """Reset all rows.

        Args:
            seed: One for all rows, one for each row, or None.
            options: Those of each row; they differ only where each row can be reset alone.
            **more: Arguments that only this environment takes, from a wrapper.
        """
        self.flags = None
        if self._promise is not None:
            self._promise.forget()
        if self.resets_rows and not more:
            result = self.reset_each(None, self._kwargs(seed, options))
        else:
            result = self.call(self.env.reset, seed=seed, options=options[0] or None, **more)
            after_reset = getattr(self.partial_reset, "after_reset", None)
            if after_reset is not None:
                after_reset(self.env)
        return self._noted(result)

    def reset_rows(
        self, mask: Flags, seed: Any = None, options: Sequence[Options] = (), **more: Any
    ) -> VectorResetResult:
        """Reset some rows; those that the environment itself has ended, as it does itself.

        Args:
            mask: Which rows.
            seed: As for `reset`, from a wrapper.
            options: As for `reset`, from a wrapper.
            **more: As for `reset`.

        Raises:
            PartialResetError: If a wrapper passes more than the mask, and the function that resets
                the rows takes nothing else.
        """
        function, flags = self.partial_reset, self.flags
        ended = None if flags is None else np.logical_or(*map(to_numpy, flags))
        if ended is not None:
            self.flags = ended & ~mask, np.zeros_like(ended)  # rows are restarted once
        given = {**options[0], **more} if options else more
        if self.resets_rows and function in (None, reset_with_mask) and not more:
            rows = np.flatnonzero(mask).tolist()
            every = self._kwargs(seed, options or [{}] * self.env.num_envs)
            # As in an autoreset, nothing is passed where there is nothing to pass.
            passed = [{} if own == {"seed": None} else own for own in every]
            return self._noted(self.reset_each(rows, passed))
        # The environment gets masks of its own, which it may change.
        if function in (None, reset_with_mask):
            own = {**(options[0] if options else {}), "reset_mask": mask.copy()}
            result = self._noted(self.call(self.env.reset, seed=seed, options=own, **more))
            if self._promise is not None:
                self._promise.check(result[0], mask)
            return result
        assert function is not None
        if seed is not None or given:
            raise PartialResetError(
                f"Expected a reset of the rows {np.flatnonzero(mask).tolist()} of {self.env} to "
                f"come with options['reset_mask'] alone, got seed={seed!r} and {shown(given)} "
                "from a wrapper: the function that was registered by register_partial_reset takes "
                "only the rows. Let the wrapper pass these in resets of all rows only, or set them "
                "as attributes of the environment."
            )
        restart = getattr(function, "restart", None)
        if restart is None or ended is None:
            return self._noted(self.call(function, self.env, mask.copy()))
        return self._noted(self.call(restart, self.env, mask.copy(), ended))

    def reset_each(self, rows: list[int] | None, kwargs: Sequence[Kwargs]) -> VectorResetResult:
        """Reset some rows, each with arguments of its own, and leave the others as they are.

        Gymnasium's own masked reset passes one options dict to all rows, an empty one by default,
        where `DummyVecEnv`, like Gymnasium's autoreset, passes nothing.

        Args:
            rows: The rows; None for all of them.
            kwargs: The arguments of each of the n rows.

        Returns:
            A copy of the observations of all rows, and the infos of those that were reset.
        """
        raise NotImplementedError

    def render(self) -> Any:
        """The frames; some environments return a list instead of a tuple."""
        frames: Any = self.env.render()
        return tuple(frames) if isinstance(frames, list) else frames

    def close(self) -> None:
        """End workers that can no longer answer, before the environment is closed."""

    def check_endings(self, ended: Flags, *, any_row: bool) -> None:
        """There are no wrappers that could hide or add an ending."""

    def check_others(self, before: Any, after: Any, rows: Any) -> None:
        """There are no wrappers that could treat a masked reset as a reset of all rows."""

    def _step(self, actions: Action, *args: Any, **kwargs: Any) -> Any:
        return self.call(self.env.step, actions, *args, **kwargs)

    def _kwargs(self, seed: Any, options: Sequence[Options]) -> list[Kwargs]:
        """The arguments of each row's reset."""
        n = self.env.num_envs
        seeds = [None] * n if seed is None else seed
        if isinstance(seed, int | np.integer):
            seeds = [seed + i for i in range(n)]
        return list(map(reset_kwargs, seeds, options))

    def _noted(self, result: Any) -> VectorResetResult:
        """The result of a reset, its form checked."""
        obs, infos = checked("reset", result, self.env)
        if self._watch is not None:
            self._watch.reset(infos)
        return obs, infos


# Environments of `SendReceiveBase` in which a call was interrupted.
_unfinished: WeakSet[Any] = WeakSet()


class SendReceiveBase(Base):
    """An environment that steps its rows in threads: `step` calls its `send`, then its `recv`.

    An exception in between, such as a user's Ctrl-C, leaves results outstanding, which the next
    call would receive. So the environment is refused from then on. EnvPool and ale-py's are of this
    kind.
    """

    @property
    def broken(self) -> bool:
        """Whether a call was interrupted."""
        return self.env in _unfinished

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function, unless an earlier call was interrupted.

        Raises:
            WorkerError: If one was.
        """
        if self.broken:
            raise WorkerError(
                f"Expected {self.env} with no call under way, but an earlier one has raised an "
                "exception or was interrupted, and its results may still come. Close this "
                "environment and build a new one."
            )
        return self.call_of_user(function, *args, **kwargs)

    def call_of_user(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function, and note it where an exception comes out: no adapter goes on then."""
        before = self.broken
        _unfinished.add(self.env)  # before the call, so that an exception anywhere leaves the note
        result = function(*args, **kwargs)
        if not before:
            _unfinished.discard(self.env)
        return result


class SyncBase(Base):
    """A `SyncVectorEnv`."""

    cls = SyncVectorEnv

    def reset_each(self, rows: list[int] | None, kwargs: Sequence[Kwargs]) -> VectorResetResult:
        """Reset some rows, one by one: the infos of a row are read before the next is reset."""
        env = self.env
        infos: Info = {}
        rows = list(range(env.num_envs)) if rows is None else rows
        sync_vector_env.forget_endings(env, rows)
        held, out = sync_vector_env.held_observations(env), sync_vector_env.shared_batch(env)
        for i in rows:
            held[i], info = reset_result(env.envs[i].reset(**kwargs[i]))
            infos = sync_vector_env.add_info(env, infos, info, i)
        concatenate(env.single_observation_space, held, out)
        return deepcopy(out), infos


class AsyncBase(Base):
    """An `AsyncVectorEnv`, whose workers are asked over their pipes.

    Outstanding answers are recorded, so that no call gets the answer to another one after an
    exception.
    """

    cls = AsyncVectorEnv
    reset_methods = ("reset", "reset_async", "reset_wait")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # A worker of the user's may end episodes in another way than the environment declares.
        self.is_known &= self.env.worker is None

    @cached_property
    def _commands(self) -> AsyncCommands:
        return AsyncCommands(self.env)

    @property
    def broken(self) -> bool:
        """Whether a worker is gone, or may answer a call that was interrupted."""
        return workers.is_broken(self.env)

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method of the environment's own that speaks to the workers."""
        return workers.whole_call(self.env, function, *args, **kwargs)

    def reset_each(self, rows: list[int] | None, kwargs: Sequence[Kwargs]) -> VectorResetResult:
        """Reset some rows, in parallel."""
        env = self.env
        infos: Info = {}
        rows = list(range(env.num_envs)) if rows is None else rows
        results = workers.reset(env, rows, [kwargs[i] for i in rows])
        for i, (_, info) in zip(rows, results, strict=True):
            infos = sync_vector_env.add_info(env, infos, info, i)
        out = workers.shared_batch(env)
        if len(out) and not workers.shares_memory(env):  # `iterate` takes no empty Dict or Tuple
            # Copied, as they are views of `out`, which is written to.
            held = deepcopy(list(iterate(env.observation_space, out)))
            for i, (obs, _) in zip(rows, results, strict=True):
                held[i] = obs
            concatenate(env.single_observation_space, held, out)
        return deepcopy(out), infos

    def render(self) -> Any:
        """One frame for each row."""
        if changed(self.env, AsyncVectorEnv, "render", *REACHING):
            return self.call(self.env.render)
        return tuple(self._commands.render())

    def close(self) -> None:
        """End workers from which results will never come."""
        workers.close(self.env)

    def _step(self, actions: Action, *args: Any, **kwargs: Any) -> Any:
        """Step over the pipes, unless a subclass steps in another way."""
        if not self.is_known or args or kwargs:
            return super()._step(actions, *args, **kwargs)
        return workers.step(self.env, actions)


class AdapterBase(Base):
    """The adapter to Gymnasium, or a subclass, which may present its `VecEnv` differently."""

    env: HoldsVecEnv
    cls = HoldsVecEnv
    reset_methods = ("reset", "reset_rows")

    @property
    def seeds_rows(self) -> bool:
        """As the adapter says."""
        return self.env.row_state.seeds_rows

    @property
    def broken(self) -> bool:
        """As the adapter says."""
        return self.env.row_state.broken

    def forget_options(self) -> None:
        """Those of the `VecEnv`, and of what is inside that."""
        self.env.row_state.forget_options()

    def reset_each(self, rows: list[int] | None, kwargs: Sequence[Kwargs]) -> VectorResetResult:
        """Reset some rows; what is returned is a copy in any case."""
        seeds = [own.get("seed") for own in kwargs]
        return self.env.reset_rows(rows, seeds, [own.get("options") for own in kwargs])


def base_of(
    env: AnyVectorEnv, mode: AutoresetMode | None = None, partial_reset: PartialReset | None = None
) -> Base:
    """The environment inside all wrappers; the arguments are those of `Base`."""
    base: Any = inside_wrappers(env)
    halves = callable(getattr(base, "send", None)) and callable(getattr(base, "recv", None))
    cls: type[Base] = SendReceiveBase if halves else Base
    if isinstance(base, SyncVectorEnv):
        cls = SyncBase
    elif isinstance(base, AsyncVectorEnv):
        cls = AsyncBase
    elif holds_vec_env(base):
        cls = AdapterBase
    return cls(base, mode, partial_reset, env is not base)


_FORMS = {
    "step": (5, "(observations, rewards, terminations, truncations, infos)"),
    "reset": (2, "(observations, infos)"),
}


def checked(method: str, result: Any, env: object) -> Any:
    """What a step or a reset has returned.

    Raises:
        ConversionError: If it is of another form than Gymnasium's.
    """
    size, form = _FORMS[method]
    if not (isinstance(result, tuple) and len(result) == size):
        length = len(result) if isinstance(result, Sequence) else "?"
        raise ConversionError(
            f"Expected {env}.{method} to return {form}, got {type(result).__name__} of length "
            f"{length}. Return that tuple from the environment, or from the wrapper around it."
        )
    if not isinstance(result[-1], Mapping):
        raise ConversionError(
            f"Expected infos to be a dict of arrays, got {type(result[-1]).__name__}. to_sb3 makes "
            "the list of dicts itself: remove the wrapper that does so."
        )
    return result
