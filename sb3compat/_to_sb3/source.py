"""Which vector environment this is, whether it can be adapted, and how to drive it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as vector_wrappers

from sb3compat._convert.infos import Info
from sb3compat._convert.observations import Actions, Array, Observations
from sb3compat._to_sb3.modes import Padded, ResetWithin, SameStep
from sb3compat._to_sb3.partial_reset import partial_reset_of, reset_with_mask
from sb3compat._to_sb3.rows_sync import AsyncRows, SyncRows, Transition
from sb3compat._to_sb3.tap import BaseTap, resets_rows_itself, wrappers_of
from sb3compat._to_sb3.wrappers import check_wrappers
from sb3compat.errors import AutoresetModeError, PartialResetError, UnsupportedEnvError

AnyVectorEnv = VectorEnv[Any, Any, Any]


class Source(Protocol):
    """Where the transitions come from: `rows.py` and `autoreset.py` have five of them."""

    def check_options(self, options: Sequence[dict[str, Any]]) -> None:
        """Refuse options that the next reset could not apply."""

    def reset(
        self, seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> tuple[list[Array], list[Info]]:
        """Reset all rows."""

    def send(self, actions: list[Array]) -> None:
        """Start a step."""

    def receive(self) -> Transition:
        """Finish it."""

    def cancel(self) -> None:
        """Drop it."""

    def render(self) -> Any:
        """One frame for each row, or None."""

    def close(self) -> None:
        """Close the environment."""


def check_env(env: Any) -> None:
    """Refuse what is no vector environment, saying what to pass instead."""
    if isinstance(env, VectorEnv):
        base = env.unwrapped
        for space in ("single_observation_space", "single_action_space"):
            if not isinstance(getattr(env, space, None), gym.Space):
                raise UnsupportedEnvError(
                    f"Expected {env} to have a {space}, the space of one row, got "
                    f"{space}={getattr(env, space, None)!r}."
                )
        if base.closed:
            raise UnsupportedEnvError(f"Expected an open environment, but {env} was closed.")
        if isinstance(base, SyncVectorEnv):
            _check_distinct(base)
        return
    got = f"got env={env!r:.200} ({type(env).__name__})"
    if isinstance(env, gym.Env):
        hint = (
            "That is a single environment. Stable-Baselines3 takes it as it is, or as "
            "DummyVecEnv([lambda: env]); for n copies of it use "
            "gymnasium.make_vec(id, num_envs=n) or SyncVectorEnv([make_env] * n)."
        )
    elif inspect.isclass(env) or callable(env):
        hint = "That makes environments but is none: call it, and pass what it returns."
    elif isinstance(env, str):
        hint = f"Make the environment first: to_sb3(gymnasium.make_vec({env!r}, num_envs=n))."
    elif isinstance(env, list | tuple):
        hint = "Put them together first: to_sb3(gymnasium.vector.SyncVectorEnv(list_of_functions))."
    else:
        hint = "gymnasium.make_vec makes one."
    raise UnsupportedEnvError(f"Expected a gymnasium.vector.VectorEnv, {got}. {hint}")


def _check_distinct(env: SyncVectorEnv[Any, Any]) -> None:
    """Refuse one environment in two rows: each would step and reset the other."""
    seen: dict[int, int] = {}
    for i, single in enumerate(env.envs):
        first = seen.setdefault(id(single.unwrapped), i)
        if first != i:
            raise UnsupportedEnvError(
                f"Expected a different environment in each row, but rows {first} and {i} hold the "
                f"same object {single.unwrapped}. The function given to SyncVectorEnv has to make "
                "a new one at each call: `lambda: gym.make(id)`, not `lambda: env`."
            )


def find_mode(env: AnyVectorEnv, given: AutoresetMode | str | None) -> AutoresetMode:
    """The autoreset mode: given, of the instance, or of its metadata, in this order.

    The metadata come last since they are often a dict shared by a class, in which a second
    environment overwrites what the first one declared (Gymnasium up to 1.3, ale-py).
    """
    base = env.unwrapped
    own = getattr(base, "autoreset_mode", None)
    if given is not None:
        mode = _as_mode(given, "autoreset_mode")
        if isinstance(base, SyncVectorEnv | AsyncVectorEnv) and _as_mode(own, "its mode") != mode:
            raise AutoresetModeError(
                f"Expected autoreset_mode={own}, which is what {base} was built with, got "
                f"autoreset_mode={mode}. Leave the argument out, or build the environment with "
                "the mode that you want."
            )
        return mode
    for declared in (own, (base.metadata or {}).get("autoreset_mode")):
        if declared is not None:
            return _as_mode(declared, f"the autoreset mode that {base} declares")
    raise AutoresetModeError(
        f"Expected {base} to declare its autoreset mode, as the attribute `autoreset_mode` or in "
        "metadata['autoreset_mode'], got neither. Say what it does when an episode ends: "
        "to_sb3(env, autoreset_mode='NextStep' | 'SameStep' | 'Disabled')."
    )


def _as_mode(value: Any, what: str) -> AutoresetMode:
    if isinstance(value, AutoresetMode):
        return value
    for mode in AutoresetMode:
        if value in (mode.value, mode.name):
            return mode
    raise AutoresetModeError(
        f"Expected {what} to be one of {[mode.value for mode in AutoresetMode]}, got {value!r} "
        f"({type(value).__name__})."
    )


def make_source(
    env: AnyVectorEnv,
    mode: AutoresetMode,
    observations: Observations,
    actions: Actions,
    *,
    copy: bool,
    require_final_obs: bool,
    padding: bool,
    timeout: float | None,
) -> Source:
    """How to drive this environment: row by row where that is possible, else as a whole.

    Raises:
        PartialResetError: If ended rows could not be reset within the step.
        UnsupportedEnvError: If a vector wrapper could not be presented exactly.
        ValueError: If padding or a timeout is asked for where it has no place.
    """
    base = env.unwrapped
    bare_async = type(env) is AsyncVectorEnv and env.worker is None
    if timeout is not None and not bare_async:
        raise ValueError(
            f"Expected timeout=None for {env}, got timeout={timeout}: only the workers of an "
            "AsyncVectorEnv without vector wrappers are waited for here."
        )
    if type(env) is SyncVectorEnv and not padding:
        return SyncRows(env, observations, actions, copy=copy)
    if type(env) is AsyncVectorEnv and bare_async and not padding:
        return AsyncRows(env, observations, actions, copy=copy, timeout=timeout)

    check_wrappers(env, mode, resets_rows=mode != AutoresetMode.SAME_STEP and not padding)
    partial_reset = partial_reset_of(base)
    if mode == AutoresetMode.DISABLED and partial_reset is None:
        partial_reset = reset_with_mask  # what the mode promises
    if mode == AutoresetMode.NEXT_STEP and partial_reset is None and not padding:
        raise PartialResetError(
            f"Expected a way to reset single rows of {base}, which is in NEXT_STEP mode: "
            "Stable-Baselines3 needs an ended row reset within the step. Three ways out: build it "
            "with autoreset_mode=AutoresetMode.SAME_STEP, if it can; teach sb3compat how with "
            f"sb3compat.register_partial_reset({type(base).__name__}, function) (or "
            "sb3compat.reset_with_mask as the function, if its reset honours "
            "options['reset_mask']); or pass padding=True, which makes each episode one step "
            "longer and is not exact."
        )
    if (
        mode == AutoresetMode.NEXT_STEP
        and isinstance(base, AsyncVectorEnv)
        and not base.shared_memory
        and not resets_rows_itself(base)
    ):
        raise PartialResetError(
            f"Expected shared_memory=True of {base}, whose class has a reset of its own: without, "
            "Gymnasium's workers reset an ended row once more after a masked reset. Or build it "
            "with autoreset_mode=AutoresetMode.SAME_STEP."
        )
    if padding and (mode != AutoresetMode.NEXT_STEP or partial_reset is not None):
        raise ValueError(
            f"Expected padding=False, as {env} in {mode.name} mode can be presented exactly, "
            "without it. Padding is for NEXT_STEP environments that cannot reset single rows."
        )
    outer, tap = _seat_tap(env)
    tap.partial_reset = partial_reset
    # A wrapper may write to what it is given.
    tap.copies = outer is not tap and not getattr(base, "copy", True)
    kwargs: dict[str, Any] = {
        "copy": copy,
        "fresh": _hands_out_fresh_arrays(outer, tap),
        "seed_rows": isinstance(base, SyncVectorEnv | AsyncVectorEnv),
    }
    if padding:
        return Padded(outer, tap, observations, actions, **kwargs)
    if mode == AutoresetMode.SAME_STEP:
        kwargs["require_final_obs"] = require_final_obs
        return SameStep(outer, tap, observations, actions, **kwargs)
    return ResetWithin(outer, tap, observations, actions, **kwargs)


def _seat_tap(env: AnyVectorEnv) -> tuple[AnyVectorEnv, BaseTap]:
    """Put a `BaseTap` directly above the base environment, or find the one that is there."""
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


def _hands_out_fresh_arrays(env: AnyVectorEnv, tap: BaseTap) -> bool:
    """Whether observations need no copy, as Gymnasium's own environments make one each time."""
    base: Any = env.unwrapped
    return (
        type(base) in (SyncVectorEnv, AsyncVectorEnv)
        and bool(base.copy or tap.copies)
        and all(type(wrapper) in _TRANSPARENT for wrapper in wrappers_of(env))
    )
