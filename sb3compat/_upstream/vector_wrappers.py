"""The private state of Gymnasium's vector wrappers, and the classes that are known by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gymnasium.wrappers import vector as vector_wrappers

from sb3compat._convert.types import AnyVectorEnv
from sb3compat._upstream.private import private, set_private

# Imported by Gymnasium on first use only, as they need torch, JAX or array-api-compat.
_CONVERTERS = {"ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"}
_MODULE = "gymnasium.wrappers.vector."


def believed_mode(wrapper: AnyVectorEnv) -> tuple[str, Any]:
    """The autoreset mode that a wrapper read from the metadata when it was made, or None.

    Returns:
        The name of the attribute, and its value.
    """
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


def is_gymnasiums(function: Any) -> bool:
    """Whether a method was written in Gymnasium itself."""
    return bool(function.__module__.startswith("gymnasium."))


@contextmanager
def paused(wrappers: Iterable[AnyVectorEnv]) -> Iterator[None]:
    """Let no `RecordVideo` among these wrappers record while the context is active.

    Gymnasium has that class since 1.2.1.
    """
    cls = getattr(vector_wrappers, "RecordVideo", ())
    videos = [(each, private(each, "recording")) for each in wrappers if isinstance(each, cls)]
    try:
        for video, _ in videos:
            set_private(video, "recording", False)
        yield
    finally:
        for video, recording in videos:
            set_private(video, "recording", recording)
