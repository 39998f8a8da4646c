"""The choice of the source that drives a vector environment."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as vector_wrappers

from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import (
    AnyVectorEnv,
    HoldsVecEnv,
)
from sb3compat._ipc.async_vector_env import shares_memory
from sb3compat._rows.source import Source
from sb3compat._to_sb3.bases import base_of
from sb3compat._to_sb3.modes import Padded, ResetWithin, SameStep
from sb3compat._to_sb3.partial_reset import (
    PartialReset,
    override_of,
    partial_reset_of,
    reset_with_mask,
)
from sb3compat._to_sb3.rows_async import AsyncRows
from sb3compat._to_sb3.rows_sync import SyncRows
from sb3compat._to_sb3.tap import BaseTap, wrappers_of
from sb3compat._to_sb3.traits import traits_of
from sb3compat._to_sb3.wrappers import check_wrappers
from sb3compat._upstream.inherited import changed
from sb3compat.errors import PartialResetError, UnsupportedSpaceError

_log = logging.getLogger("sb3compat")


@dataclass(frozen=True)
class Settings:
    """How to drive an environment.

    Attributes:
        env: The environment, with its wrappers.
        mode: The autoreset mode of the environment.
        copy: Whether each step returns arrays of its own.
        require_final_obs: Whether a SAME_STEP environment must give last observations.
        padding: Whether to pad episodes where ended rows cannot be reset on demand.
        timeout: How many seconds workers may take; None for ever.
        partial_reset: The function that resets some rows; None if there is none.
    """

    env: AnyVectorEnv
    mode: AutoresetMode
    copy: bool = True
    require_final_obs: bool = True
    padding: bool = False
    timeout: float | None = None
    partial_reset: PartialReset | None = None


def make_source(settings: Settings, observations: Observations, actions: Actions) -> Source:
    """The source that drives this environment: row by row where possible, else as a whole.

    Raises:
        PartialResetError: If ended rows could not be reset within the step.
        UnsupportedEnvError: If a vector wrapper could not be presented exactly.
        ValueError: If padding or a timeout is asked for, but does not apply to the environment.
    """
    known = replace(settings, partial_reset=_partial_reset(settings))
    by_row = _row_source(known)
    if by_row is None and not actions.leaves:
        raise UnsupportedSpaceError(
            f"Expected {settings.env} to have a single_action_space with at least one part, got "
            f"single_action_space={settings.env.single_action_space}: Gymnasium splits a batch of "
            "such actions into no rows at all. Adapt a SyncVectorEnv or AsyncVectorEnv without "
            "vector wrappers, or take a VecEnv as it is; or give the sub-environments another "
            "action space."
        )
    _refuse(known, by_row=by_row is not None)
    make = by_row or partial(_whole_source, known)
    source = make(observations, actions)
    _log.debug(
        "to_sb3: %s in %s mode is driven by %s: %s",
        settings.env,
        settings.mode.name,
        type(source).__name__,
        _why(known, by_row=by_row is not None),
    )
    return source


def _why(settings: Settings, *, by_row: bool) -> str:
    if by_row:
        return "a bare SyncVectorEnv or AsyncVectorEnv, row by row"
    if settings.padding:
        return "padding=True"
    if settings.mode == AutoresetMode.SAME_STEP:
        return "as a whole; it resets its rows itself"
    return f"as a whole; ended rows are reset by {settings.partial_reset}"


def _partial_reset(settings: Settings) -> PartialReset | None:
    known = partial_reset_of(settings.env.unwrapped)
    # DISABLED mode promises masked resets.
    promised = reset_with_mask if settings.mode == AutoresetMode.DISABLED else None
    return known or promised


def _row_source(settings: Settings) -> Callable[[Observations, Actions], Source] | None:
    """A function that makes the row-by-row source, or None."""
    env = settings.env
    if settings.padding:
        return None
    if type(env) is SyncVectorEnv and changed(env, SyncVectorEnv, "step", "reset") is None:
        return partial(SyncRows, env, copy=settings.copy)
    if isinstance(env, AsyncVectorEnv) and _is_bare_async(env):
        return partial(AsyncRows, env, copy=settings.copy, timeout=settings.timeout)
    return None


def _is_bare_async(env: AnyVectorEnv) -> bool:
    return (
        type(env) is AsyncVectorEnv
        and env.worker is None
        and changed(env, AsyncVectorEnv, "step", "reset") is None
    )


def _refuse(settings: Settings, *, by_row: bool) -> None:
    """Refuse an environment that cannot be presented exactly, and options that do not apply."""
    env, mode, padding = settings.env, settings.mode, settings.padding
    if settings.timeout is not None and not _is_bare_async(env):
        raise ValueError(
            f"Expected timeout=None for {env}, got timeout={settings.timeout}. A timeout is only "
            "for an AsyncVectorEnv without vector wrappers. Leave the argument out."
        )
    if by_row:
        return
    check_wrappers(env, mode, resets_rows=mode != AutoresetMode.SAME_STEP and not padding)
    if mode == AutoresetMode.NEXT_STEP:
        if settings.partial_reset is None and not padding:
            raise _no_partial_reset(env.unwrapped)
        _refuse_lingering_autoresets(env.unwrapped)
    if padding and (mode != AutoresetMode.NEXT_STEP or settings.partial_reset is not None):
        raise ValueError(
            f"Expected padding=False, as {env} in {mode.name} mode can be presented exactly. "
            "Padding is for NEXT_STEP environments that cannot reset single rows."
        )


def _no_partial_reset(base: AnyVectorEnv) -> PartialResetError:
    override = override_of(base)
    known = ""
    if override is not None:
        cls, name = override
        shown_name = "VectorEnvAdapter" if cls is HoldsVecEnv else cls.__name__
        known = (
            f" The one known for {shown_name} does not hold here: {name!r} is overridden, and "
            "that code would be bypassed."
        )
    return PartialResetError(
        f"Expected a way to reset single rows of {base}, which is in NEXT_STEP mode: "
        f"Stable-Baselines3 needs an ended row reset within the step.{known} "
        "Three ways out: build it with "
        "autoreset_mode=AutoresetMode.SAME_STEP, if it can; teach sb3compat how with "
        f"sb3compat.register_partial_reset({type(base).__name__}, function) (or "
        "sb3compat.reset_with_mask as the function, if its reset honours options['reset_mask']); "
        "or pass padding=True, which makes each episode one step longer and is not exact."
    )


def _refuse_lingering_autoresets(base: AnyVectorEnv) -> None:
    if not isinstance(base, AsyncVectorEnv) or base_of(base).resets_rows:
        return
    if not shares_memory(base):
        raise PartialResetError(
            f"Expected shared_memory=True of {base}, as its class overrides reset. Without shared "
            "memory, Gymnasium's workers reset an ended row once more after a masked reset. Or "
            "build it with autoreset_mode=AutoresetMode.SAME_STEP."
        )


def _whole_source(settings: Settings, observations: Observations, actions: Actions) -> Source:
    outer, tap = _seat_tap(settings.env)
    # A wrapper may write into the observations that it gets.
    copies = outer is not tap and not getattr(settings.env.unwrapped, "copy", True)
    watch = traits_of(tap.env).watch
    seen = None if watch is None else watch(tap.env, settings.mode)
    tap.configure(settings.partial_reset, settings.mode, seen, copies=copies)
    fresh = _hands_out_fresh_arrays(outer, copies=copies)
    make: Callable[..., Source] = ResetWithin
    if settings.padding:
        make = Padded
    elif settings.mode == AutoresetMode.SAME_STEP:
        make = partial(SameStep, require_final_obs=settings.require_final_obs)
    return make(outer, tap, observations, actions, copy=settings.copy, fresh=fresh)


def _seat_tap(env: AnyVectorEnv) -> tuple[AnyVectorEnv, BaseTap]:
    """Put a `BaseTap` directly above the base environment, or find the existing one.

    Inside of the user's wrappers, where there are any: the innermost wrapper's `env` becomes the
    tap, which stays there. It hands everything on, and acts only while the adapter resets.
    """
    innermost = None
    for wrapper in wrappers_of(env):
        innermost = wrapper
    if isinstance(innermost, BaseTap):
        return env, innermost
    if innermost is None:
        tap = BaseTap(env)
        return tap, tap
    innermost.env = tap = BaseTap(innermost.env)
    return env, tap


# Wrappers that hand observations through untouched.
_TRANSPARENT = (
    BaseTap,
    vector_wrappers.RecordEpisodeStatistics,
    vector_wrappers.ClipReward,
    vector_wrappers.TransformReward,
    vector_wrappers.NormalizeReward,
    vector_wrappers.ClipAction,
    vector_wrappers.RescaleAction,
    vector_wrappers.TransformAction,
)


def _hands_out_fresh_arrays(env: AnyVectorEnv, *, copies: bool) -> bool:
    """Whether observations need no copy, as the environment makes one each time."""
    made = copies or base_of(env).hands_out_new_arrays
    return made and all(type(wrapper) in _TRANSPARENT for wrapper in wrappers_of(env))
