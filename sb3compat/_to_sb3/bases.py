"""What is known of a vector environment without its wrappers: asked for in place of its class.

Gymnasium's `SyncVectorEnv` and `AsyncVectorEnv` hold single environments. So does the adapter to
Gymnasium, whose `VecEnv` may be any. Of all others, nothing is known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, iterate

from sb3compat._convert.types import (
    AnyVectorEnv,
    Flags,
    HoldsVecEnv,
    Info,
    Kwargs,
    Value,
    VectorResetResult,
    holds_vec_env,
)
from sb3compat._ipc import async_vector_env as workers
from sb3compat._ipc.unfinished import is_unfinished
from sb3compat._upstream import sync_vector_env
from sb3compat._upstream.inherited import changed


class Base:
    """A vector environment of which nothing is known but its interface.

    Args:
        env: The environment, without wrappers.
    """

    # Whether each row is an environment of its own, which may give infos of any kind.
    holds_single_envs = False

    def __init__(self, env: Any) -> None:
        self.env = env

    @property
    def seeds_rows(self) -> bool:
        """Whether a reset gives each row a seed of its own; else the first one is for all rows."""
        return False

    @property
    def resets_rows(self) -> bool:
        """Whether `reset_rows` is here."""
        return False

    @property
    def mode_is_sure(self) -> bool:
        """Whether it ends episodes as the mode that it declares says, whatever is in its infos."""
        return False

    @property
    def hands_out_new_arrays(self) -> bool:
        """Whether the observations of a step share no memory with those of another."""
        return False

    @property
    def broken(self) -> bool:
        """Whether a worker is lost, or a call was interrupted whose results may still come."""
        return is_unfinished(self.env)

    def pending(self) -> Flags | None:
        """The rows whose next step is an autoreset; None where that is not known."""
        return None

    def forget_options(self) -> None:
        """Forget options that wait inside for the next reset, as others replace them."""

    def reset_rows(
        self, rows: list[int] | None, kwargs: Sequence[Kwargs], *, copy: bool
    ) -> VectorResetResult:
        """Reset some rows, each with arguments of its own, and leave the others as they are.

        Gymnasium's own masked reset passes one options dict to all rows, an empty one by default,
        where `DummyVecEnv`, like Gymnasium's autoreset, passes nothing.

        Args:
            rows: The rows; None for all of them.
            kwargs: The arguments of each of the n rows.
            copy: Whether to copy the observations, if the environment itself does not.
        """
        raise NotImplementedError


class _GymnasiumBase(Base):
    """Common to Gymnasium's two classes and what derives from them."""

    cls: type[Any]
    holds_single_envs = True

    @property
    def seeds_rows(self) -> bool:
        """Each row takes its own seed."""
        return True

    @property
    def resets_rows(self) -> bool:
        """Unless a subclass resets in another way."""
        return self._keeps("reset")

    @property
    def mode_is_sure(self) -> bool:
        """Unless a subclass steps in another way."""
        return self._keeps("step")

    @property
    def hands_out_new_arrays(self) -> bool:
        """With `copy=True`, unless a subclass does something else."""
        env: Any = self.env
        return type(env) is self.cls and bool(env.copy)

    def reset_rows(
        self, rows: list[int] | None, kwargs: Sequence[Kwargs], *, copy: bool
    ) -> VectorResetResult:
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
        return (deepcopy(out) if env.copy or copy else out), infos

    def _results(
        self, rows: list[int], kwargs: list[Kwargs]
    ) -> tuple[Iterable[tuple[Value, Info]], list[Value] | None]:
        """What the resets return, and the last observations of all rows, to be batched."""
        raise NotImplementedError

    def _out(self) -> Value:
        """The environment's own batch."""
        raise NotImplementedError

    def _keeps(self, method: str) -> bool:
        return changed(self.env, self.cls, method, known=sync_vector_env.ADDS_INFO) is None


class SyncBase(_GymnasiumBase):
    """A `SyncVectorEnv`."""

    cls = SyncVectorEnv

    def pending(self) -> Flags:
        """Those that ended, in the modes in which they are not reset at once."""
        return sync_vector_env.pending_autoresets(self.env)

    def _results(
        self, rows: list[int], kwargs: list[Kwargs]
    ) -> tuple[Iterable[tuple[Value, Info]], list[Value]]:
        env = self.env
        sync_vector_env.forget_endings(env, rows)
        # One by one: the infos of a row are read before the next row is reset.
        results = (env.envs[i].reset(**own) for i, own in zip(rows, kwargs, strict=True))
        return results, sync_vector_env.held_observations(env)

    def _out(self) -> Value:
        return sync_vector_env.shared_batch(self.env)


class AsyncBase(_GymnasiumBase):
    """An `AsyncVectorEnv`."""

    cls = AsyncVectorEnv

    @property
    def broken(self) -> bool:
        """Whether a worker is gone, too."""
        return workers.is_broken(self.env)

    def pending(self) -> Flags | None:
        """The workers are asked; those of another author's cannot be."""
        none = np.zeros(self.env.num_envs, np.bool_)
        if self.env.autoreset_mode != AutoresetMode.NEXT_STEP:
            return none
        if self.env.worker is not None:
            return None
        none[workers.pending_autoresets(self.env, range(self.env.num_envs))] = True
        return none

    def _results(
        self, rows: list[int], kwargs: list[Kwargs]
    ) -> tuple[Iterable[tuple[Value, Info]], list[Value] | None]:
        env, held = self.env, None
        results = workers.reset(env, rows, kwargs)
        out = self._out()
        if len(out) and not workers.shares_memory(env):  # `iterate` takes no empty Dict or Tuple
            # Copied, as they are views of `out`, which is written to.
            held = deepcopy(list(iterate(env.observation_space, out)))
        return results, held

    def _out(self) -> Value:
        return workers.shared_batch(self.env)


class AdapterBase(Base):
    """The adapter to Gymnasium, or a subclass, which may present its `VecEnv` differently."""

    env: HoldsVecEnv
    holds_single_envs = True

    @property
    def seeds_rows(self) -> bool:
        """As the adapter says."""
        return self.env.row_state.seeds_rows

    @property
    def resets_rows(self) -> bool:
        """Unless a subclass resets in another way."""
        return changed(self.env, HoldsVecEnv, "reset", "reset_rows") is None

    @property
    def mode_is_sure(self) -> bool:
        """Unless a subclass steps in another way."""
        return changed(self.env, HoldsVecEnv, "step") is None

    @property
    def hands_out_new_arrays(self) -> bool:
        """Unless a subclass does something else."""
        return self.mode_is_sure and self.resets_rows

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

    def reset_rows(
        self, rows: list[int] | None, kwargs: Sequence[Kwargs], *, copy: bool
    ) -> VectorResetResult:
        """Reset some rows; what is returned is a copy in any case."""
        seeds = [own.get("seed") for own in kwargs]
        return self.env.reset_rows(rows, seeds, [own.get("options") for own in kwargs])


def base_of(env: AnyVectorEnv) -> Base:
    """What is known of the environment inside all wrappers."""
    base = env.unwrapped
    if isinstance(base, SyncVectorEnv):
        return SyncBase(base)
    if isinstance(base, AsyncVectorEnv):
        return AsyncBase(base)
    return AdapterBase(base) if holds_vec_env(base) else Base(base)
