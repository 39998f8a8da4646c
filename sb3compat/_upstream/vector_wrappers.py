"""What Gymnasium's vector wrappers keep for themselves, and the classes that we know by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gymnasium.wrappers import vector as vector_wrappers

from sb3compat._convert.types import AnyVectorEnv, Value
from sb3compat._upstream.private import private
from sb3compat._upstream.versions import GYMNASIUM

# Imported by Gymnasium on first use only, as they need torch, JAX or array-api-compat.
_CONVERTERS = {"ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"}
_MODULE = "gymnasium.wrappers.vector."
_REMEMBERING = (vector_wrappers.RecordEpisodeStatistics, vector_wrappers.NormalizeReward)


def believed_mode(wrapper: AnyVectorEnv) -> tuple[str, Value]:
    """The autoreset mode that a wrapper read from the metadata when it was made, or None.

    Returns:
        The name of the attribute, and its value.

    Some keep it as `autoreset_mode`, some (since Gymnasium 1.4) as `_autoreset_mode`, others not.
    """
    if GYMNASIUM >= (1, 4) and isinstance(wrapper, _REMEMBERING):
        return "_autoreset_mode", private(wrapper, "_autoreset_mode")
    for name in ("autoreset_mode", "_autoreset_mode"):
        if vars(wrapper).get(name) is not None:
            return name, vars(wrapper)[name]
    return "", None


def converter_class(wrapper: AnyVectorEnv) -> type | None:
    """Gymnasium's class by which this wrapper converts arrays to another library's, or None."""
    for cls in type(wrapper).__mro__:
        if cls.__name__ in _CONVERTERS and cls.__module__.startswith(_MODULE):
            return cls
    return None


def is_gymnasiums(function: Value) -> bool:
    """Whether a method was written in Gymnasium itself."""
    return bool(function.__module__.startswith("gymnasium."))


@contextmanager
def paused(video: AnyVectorEnv) -> Iterator[None]:
    """Have a `RecordVideo` record nothing for a while."""
    recording = private(video, "recording")
    video.recording = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        video.recording = recording  # type: ignore[attr-defined]


def is_video(wrapper: AnyVectorEnv) -> bool:
    """Whether this is a `RecordVideo`, which Gymnasium has since 1.2."""
    recorder = getattr(vector_wrappers, "RecordVideo", None)
    return recorder is not None and isinstance(wrapper, recorder)
