"""What the adapter knows about a base environment (without wrappers), depending on its class.

Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv` hold single environments. So does the adapter to
Gymnasium, whose `VecEnv` may be any. Of all others, nothing is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any
from weakref import WeakSet

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, iterate

from sb3compat._convert.types import (
    Action,
    AnyVectorEnv,
    Flags,
    HoldsVecEnv,
    Info,
    Kwargs,
    VectorResetResult,
    holds_vec_env,
)
from sb3compat._ipc import async_vector_env as workers
from sb3compat._upstream import sync_vector_env
from sb3compat._upstream.inherited import changed
from sb3compat.errors import WorkerError


class Base:
    """A vector environment of an unknown class, of which only the interface is known.

    Args:
        env: The environment, without wrappers.

    Attributes:
        cls: The class that we know, from which the environment derives.
        reset_methods: The methods of that class that `reset_rows` replaces.
        holds_single_envs: Whether each row is a separate environment, which may return infos of any
            type.
        must_be_reset: Whether a step before the adapter's first reset is refused in every mode.
    """

    cls: type[Any] | None = None
    reset_methods: tuple[str, ...] = ("reset",)
    holds_single_envs = False
    must_be_reset = False

    def __init__(self, env: Any) -> None:
        self.env = env

    @property
    def is_known(self) -> bool:
        """Whether it overrides no method of the class that we know.

        If so, it ends episodes as its declared mode says, whatever its infos contain.
        """
        return self.cls is not None and changed(self.env, self.cls) is None

    @property
    def resets_rows(self) -> bool:
        """Whether `reset_rows` is implemented, and the environment does not override a reset."""
        return self.cls is not None and changed(self.env, self.cls, *self.reset_methods) is None

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

    def pending(self) -> Flags | None:
        """The rows whose next step is an autoreset; None where that is not known."""
        return None

    def forget_options(self) -> None:
        """Discard options that were set inside for the next reset, as others replace them."""

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that steps or resets the environment."""
        return function(*args, **kwargs)

    def step(self, actions: Action) -> Any:
        """Step all rows."""
        return self.call(self.env.step, actions)

    def render(self) -> Any:
        """The frames; some environments return a list instead of a tuple."""
        frames: Any = self.env.render()
        return tuple(frames) if isinstance(frames, list) else frames

    def close(self) -> None:
        """End workers that can no longer answer, before the environment is closed."""

    def reset_rows(self, rows: list[int] | None, kwargs: Sequence[Kwargs]) -> VectorResetResult:
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


# Environments of `SendReceiveBase` in which a call was interrupted.
_unfinished: WeakSet[Any] = WeakSet()


class SendReceiveBase(Base):
    """An environment that steps its rows in threads: `step` calls its `send`, then its `recv`.

    An exception in between, such as a user's Ctrl-C, leaves results outstanding, which the next
    call would receive. So the environment is refused from then on. EnvPool and ale-py's are of this
    kind. A step before the first reset raises such an exception, so it is refused beforehand.
    """

    must_be_reset = True

    @property
    def broken(self) -> bool:
        """Whether a call was interrupted."""
        return self.env in _unfinished

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function, unless an earlier call was interrupted.

        Raises:
            WorkerError: If one has not.
        """
        if self.broken:
            raise WorkerError(
                f"Expected {self.env} with no call under way, but an earlier one has raised an "
                "exception or was interrupted, and its results may still come. Close this "
                "environment and build a new one."
            )
        _unfinished.add(self.env)  # before the call, so that an exception anywhere leaves the note
        result = function(*args, **kwargs)
        _unfinished.discard(self.env)
        return result


class _GymnasiumBase(Base):
    """Common to Gymnasium's two classes and what derives from them."""

    holds_single_envs = True

    def reset_rows(self, rows: list[int] | None, kwargs: Sequence[Kwargs]) -> VectorResetResult:
        """Reset some rows."""
        env = self.env
        chosen = list(range(env.num_envs)) if rows is None else rows
        results, held = self._results(chosen, [kwargs[i] for i in chosen])
        infos: Info = {}
        for i, (obs, info) in zip(chosen, results, strict=True):
            if held is not None:
                held[i] = obs
            infos = sync_vector_env.add_info(env, infos, info, i)
        out = self._out()
        if held is not None:
            concatenate(env.single_observation_space, held, out)
        return deepcopy(out), infos

    def _results(
        self, rows: list[int], kwargs: list[Kwargs]
    ) -> tuple[Iterable[tuple[Any, Info]], list[Any] | None]:
        """What the resets return, and the last observations of all rows, to be batched."""
        raise NotImplementedError

    def _out(self) -> Any:
        """The environment's own batch."""
        raise NotImplementedError


class SyncBase(_GymnasiumBase):
    """A `SyncVectorEnv`."""

    cls = SyncVectorEnv

    def pending(self) -> Flags:
        """Those that ended, in the modes in which they are not reset at once."""
        return sync_vector_env.pending_autoresets(self.env)

    def _results(
        self, rows: list[int], kwargs: list[Kwargs]
    ) -> tuple[Iterable[tuple[Any, Info]], list[Any]]:
        env = self.env
        sync_vector_env.forget_endings(env, rows)
        # One by one: the infos of a row are read before the next row is reset.
        results = (env.envs[i].reset(**own) for i, own in zip(rows, kwargs, strict=True))
        return results, sync_vector_env.held_observations(env)

    def _out(self) -> Any:
        return sync_vector_env.shared_batch(self.env)


class AsyncBase(_GymnasiumBase):
    """An `AsyncVectorEnv`, whose workers are asked over their pipes.

    Outstanding answers are recorded, so that no call gets the answer to another one after an
    exception.
    """

    cls = AsyncVectorEnv

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._steps_as_known = self.is_known

    @property
    def broken(self) -> bool:
        """Whether a worker is gone, or may answer a call that was interrupted."""
        return workers.is_broken(self.env)

    def pending(self) -> Flags | None:
        """The workers are asked, unless they are custom ones."""
        none = np.zeros(self.env.num_envs, np.bool_)
        if self.env.autoreset_mode != AutoresetMode.NEXT_STEP:
            return none
        if self.env.worker is not None:
            return None
        none[workers.pending_autoresets(self.env, range(self.env.num_envs))] = True
        return none

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method of the environment's own that speaks to the workers."""
        return workers.whole_call(self.env, function, *args, **kwargs)

    def step(self, actions: Action) -> Any:
        """Step all rows; over the pipes, unless a subclass steps in another way."""
        if not self._steps_as_known:
            return self.call(self.env.step, actions)
        return workers.step(self.env, actions)

    def render(self) -> Any:
        """One frame for each row."""
        if changed(self.env, AsyncVectorEnv, "render"):
            return self.call(self.env.render)
        return tuple(workers.call(self.env, "render", (), {}, range(self.env.num_envs)))

    def close(self) -> None:
        """End workers from which results will never come."""
        workers.close(self.env)

    def _results(
        self, rows: list[int], kwargs: list[Kwargs]
    ) -> tuple[Iterable[tuple[Any, Info]], list[Any] | None]:
        env, held = self.env, None
        results = workers.reset(env, rows, kwargs)
        out = self._out()
        if len(out) and not workers.shares_memory(env):  # `iterate` takes no empty Dict or Tuple
            # Copied, as they are views of `out`, which is written to.
            held = deepcopy(list(iterate(env.observation_space, out)))
        return results, held

    def _out(self) -> Any:
        return workers.shared_batch(self.env)


class AdapterBase(Base):
    """The adapter to Gymnasium, or a subclass, which may present its `VecEnv` differently."""

    env: HoldsVecEnv
    cls = HoldsVecEnv
    reset_methods = ("reset", "reset_rows")
    holds_single_envs = True

    @property
    def seeds_rows(self) -> bool:
        """As the adapter says."""
        return self.env.row_state.seeds_rows

    @property
    def broken(self) -> bool:
        """As the adapter says."""
        return self.env.row_state.broken

    def pending(self) -> Flags:
        """Those that ended, in the modes in which they are not reset at once."""
        return self.env.row_state.ended.copy()

    def forget_options(self) -> None:
        """Those of the `VecEnv`, and of what is inside that."""
        self.env.row_state.forget_options()

    def reset_rows(self, rows: list[int] | None, kwargs: Sequence[Kwargs]) -> VectorResetResult:
        """Reset some rows; what is returned is a copy in any case."""
        seeds = [own.get("seed") for own in kwargs]
        return self.env.reset_rows(rows, seeds, [own.get("options") for own in kwargs])


def base_of(env: AnyVectorEnv) -> Base:
    """What is known of the environment inside all wrappers."""
    base: Any = env.unwrapped
    if isinstance(base, SyncVectorEnv):
        return SyncBase(base)
    if isinstance(base, AsyncVectorEnv):
        return AsyncBase(base)
    if holds_vec_env(base):
        return AdapterBase(base)
    halves = callable(getattr(base, "send", None)) and callable(getattr(base, "recv", None))
    return SendReceiveBase(base) if halves else Base(base)
