"""The choice of the source that drives a vector environment."""

from __future__ import annotations

import logging

from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import AnyVectorEnv, HoldsVecEnv, Source, inside_wrappers
from sb3compat._ipc.async_vector_env import shares_memory
from sb3compat._to_sb3.accept import check_starts
from sb3compat._to_sb3.bases import AsyncBase, Base, base_of
from sb3compat._to_sb3.modes import Mode, Padded, ResetWithin, SameStep
from sb3compat._to_sb3.native import NativeSource
from sb3compat._to_sb3.partial_reset import override_of, partial_reset_of, reset_with_mask
from sb3compat._to_sb3.rows_async import AsyncRows
from sb3compat._to_sb3.rows_sync import SyncRows
from sb3compat._to_sb3.tap import Wrapped
from sb3compat._to_sb3.whole import VectorSource
from sb3compat._to_sb3.wrappers import check_wrappers
from sb3compat._upstream.inherited import keeps_all
from sb3compat.errors import PartialResetError, UnsupportedSpaceError

_log = logging.getLogger("sb3compat")


def make_source(
    env: AnyVectorEnv,
    mode: AutoresetMode,
    observations: Observations,
    actions: Actions,
    *,
    copy: bool = True,
    require_final_obs: bool = True,
    padding: bool = False,
    timeout: float | None = None,
) -> Source:
    """The source that drives this environment: row by row where possible, else as a whole.

    Args:
        env: The environment, with its wrappers.
        mode: The autoreset mode of the environment.
        observations: The layout of its observations.
        actions: The layout of its actions.
        copy: Whether each step returns arrays of its own.
        require_final_obs: Whether a SAME_STEP environment must give last observations.
        padding: Whether to pad episodes where ended rows cannot be reset on demand.
        timeout: How many seconds workers may take; None for ever.

    Raises:
        PartialResetError: If ended rows could not be reset within the step.
        UnsupportedEnvError: If it could not be presented exactly.
        UnsupportedSpaceError: If Gymnasium cannot split its actions by row, or the spaces of its
            rows start at different numbers.
        ValueError: If padding or a timeout is asked for, but does not apply to the environment.
    """
    source: Source
    check_starts(env, observations)
    _check_timeout(env, timeout)
    if type(env) is SyncVectorEnv and keeps_all(env, SyncVectorEnv) and not padding:
        source = SyncRows(env, observations, actions, copy=copy)
    elif isinstance(env, AsyncVectorEnv) and _is_bare_async(env) and not padding:
        source = AsyncRows(env, observations, actions, copy=copy, timeout=timeout)
    else:
        ends = AutoresetMode.SAME_STEP
        _check_actions(env, actions)
        check_wrappers(env, mode, resets_rows=mode != ends and not padding)
        # DISABLED mode promises masked resets.
        promised = reset_with_mask if mode == AutoresetMode.DISABLED else None
        base = base_of(env, mode, partial_reset_of(inside_wrappers(env)) or promised)
        _check_resets(env, base, mode, padding=padding)
        driven = base if env is base.env else Wrapped(env, base)
        presented: Mode = ResetWithin(base, observations)
        if padding:
            presented = Padded(base, observations)
        elif mode == ends:
            presented = SameStep(base, observations, require_final_obs=require_final_obs)
        plain = driven is base and type(presented) is ResetWithin
        cls = NativeSource if plain and observations.only_shape is not None else VectorSource
        source = cls(driven, presented, observations, actions, copy=copy)
    _log.debug("to_sb3: %s in %s mode is driven by %s", env, mode.name, type(source).__name__)
    return source


def _is_bare_async(env: AnyVectorEnv) -> bool:
    return type(env) is AsyncVectorEnv and env.worker is None and keeps_all(env, AsyncVectorEnv)


def _check_timeout(env: AnyVectorEnv, timeout: float | None) -> None:
    if timeout is not None and not _is_bare_async(env):
        raise ValueError(
            f"Expected timeout=None for {env}, got timeout={timeout}. A timeout is only "
            "for an AsyncVectorEnv without vector wrappers. Leave the argument out."
        )


def _check_actions(env: AnyVectorEnv, actions: Actions) -> None:
    if not actions.leaves:
        raise UnsupportedSpaceError(
            f"Expected {env} to have a single_action_space with at least one part, got "
            f"single_action_space={env.single_action_space}: Gymnasium splits a batch of "
            "such actions into no rows at all. Adapt a SyncVectorEnv or AsyncVectorEnv without "
            "vector wrappers, or take a VecEnv as it is; or give the sub-environments another "
            "action space."
        )


def _check_resets(env: AnyVectorEnv, base: Base, mode: AutoresetMode, *, padding: bool) -> None:
    """Refuse rows that cannot be reset where they end, and padding where they can."""
    needs_resets = mode == AutoresetMode.NEXT_STEP
    lacks_resets = needs_resets and base.partial_reset is None
    if lacks_resets and not padding:
        raise _no_partial_reset(inside_wrappers(env))
    if padding and not lacks_resets:
        raise ValueError(
            f"Expected padding=False, as {env} in {mode.name} mode can be presented exactly. "
            "Leave it out: padding is for NEXT_STEP environments that cannot reset single rows."
        )
    if not (needs_resets and isinstance(base, AsyncBase)) or shares_memory(base.env):
        return
    if not base.resets_rows or base.env.worker is not None:
        raise PartialResetError(
            f"Expected shared_memory=True of {base.env}, as its class overrides reset, or its "
            "worker is another one. Without shared memory, Gymnasium's workers reset an ended row "
            "once more after a masked reset. "
            "Or build it with autoreset_mode=AutoresetMode.SAME_STEP."
        )


def _no_partial_reset(base: AnyVectorEnv) -> PartialResetError:
    override = override_of(base)
    known = ""
    if override is not None:
        cls, name = override
        shown_name = "VectorEnvAdapter" if cls is HoldsVecEnv else cls.__name__
        known = (
            f" The partial reset of {shown_name} cannot be used: {name!r} is overridden, and the "
            "overriding code would be bypassed."
        )
    return PartialResetError(
        f"Expected a way to reset single rows of {base}, which is in NEXT_STEP mode: "
        f"Stable-Baselines3 needs an ended row reset within the step.{known} "
        "Alternatives: build it with "
        "autoreset_mode=AutoresetMode.SAME_STEP, if it has that mode; register a partial reset: "
        f"sb3compat.register_partial_reset({type(base).__name__}, function) (with "
        "sb3compat.reset_with_mask as the function, if its reset supports options['reset_mask']); "
        "or pass padding=True, which makes each episode one step longer and is not exact."
    )
