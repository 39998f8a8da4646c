"""The observation space to present: one that contains the observations.

SB3's wrappers declare other spaces than those of the observations that they return. `VecNormalize`
keeps the bounds and the dtype of the space inside, so that saved policies still load.
`VecFrameStack` repeats the bounds of each number, while it puts whole observations side by side and
fills the missing ones with zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from sb3compat._convert.types import Array, Space, holds_rows
from sb3compat._upstream.vec_env import derives_from, inside_of, keeps_methods, layers_of


def presented_space(vec_env: Any) -> Space:
    """The space of a single observation of a `VecEnv`.

    Args:
        vec_env: The environment, with its wrappers. The declared space is used for wrappers of
            other classes than SB3's, and for subclasses that change the transformation.
    """
    own: Space = vec_env.observation_space
    inside = inside_of(vec_env)
    if inside is None:
        return vec_env.shown_space if holds_rows(vec_env) else own
    below = presented_space(inside)
    shown = own
    if keeps_methods(vec_env, "VecNormalize", "normalize_obs", "_normalize_obs"):
        shown = _normalized(vec_env, below)
    elif keeps_methods(vec_env, "VecFrameStack", "step_wait", "reset"):
        shown = _stacked(vec_env.stacked_obs, below, own)
    elif keeps_methods(vec_env, "VecTransposeImage", "transpose_observations", "transpose_image"):
        shown = _transposed(vec_env, below)
    elif keeps_methods(vec_env, "VecExtractDictObs", "step_wait", "reset"):
        shown = _parts(below)[vec_env.key]
    elif own is inside.observation_space:
        shown = below
    return own if shown == own else shown


def normalizes(vec_env: Any) -> bool:
    """Whether SB3's `VecNormalize` is among the wrappers."""
    return any(derives_from(layer, "VecNormalize") for layer in layers_of(vec_env))


def _normalized(vec_env: Any, below: Space) -> Space:
    if not vec_env.norm_obs:
        return below
    if not isinstance(below, spaces.Dict):
        return _within(vec_env.clip_obs, below)
    parts = _parts(below)
    shown = {key: _within(vec_env.clip_obs, parts[key]) for key in vec_env.norm_obs_keys}
    return _dict({**parts, **shown})


def _within(clip: float, space: Space) -> Space:
    high = np.full(space.shape or (), clip, np.float32)
    return spaces.Box(-high, high, dtype=np.float32)


def _stacked(stack: Any, below: Space, own: Space) -> Space:
    """The space of stacked observations.

    Args:
        stack: SB3's `StackedObservations`.
        below: The space of one observation.
        own: The space that SB3 gives, whose dtype is that of the stack.
    """
    if isinstance(below, spaces.Dict):
        own_parts, inner = _parts(own), stack.sub_stacked_observations
        parts = _parts(below).items()
        return _dict({key: _stacked(inner[key], part, own_parts[key]) for key, part in parts})
    assert isinstance(below, spaces.Box)
    assert isinstance(own, spaces.Box)
    dtype = np.dtype(own.dtype)
    if not np.can_cast(below.dtype, dtype, "same_kind"):  # the stack truncates the numbers
        limits = np.iinfo(dtype)
        return spaces.Box(limits.min, limits.max, own.shape, dtype.type)

    def bound(newest: Array, with_zero: Array) -> Array:
        frames = [with_zero] * (stack.n_stack - 1) + [newest]
        return np.concatenate(frames, axis=stack.repeat_axis).astype(dtype)

    low = bound(below.low, np.minimum(below.low, 0))
    high = bound(below.high, np.maximum(below.high, 0))
    return spaces.Box(low, high, dtype=dtype.type)


def _transposed(vec_env: Any, below: Space) -> Space:
    if vec_env.skip:
        return below
    own: Space = vec_env.observation_space
    if not isinstance(below, spaces.Dict):
        return own
    images = {key: _parts(own)[key] for key in vec_env.image_space_keys}
    return _dict({**_parts(below), **images})


def _parts(space: Space) -> dict[Any, Space]:
    assert isinstance(space, spaces.Dict)
    return dict(space.spaces)


def _dict(parts: dict[Any, Space]) -> Space:
    return spaces.Dict(list(parts.items()))  # a dict would be sorted
