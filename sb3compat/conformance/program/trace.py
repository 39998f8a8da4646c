"""Tracebacks without the frames of the kit: they begin in the user's code."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path
from types import TracebackType

_PACKAGE = Path(__file__).parents[2]
# Frames of these files and folders stand between the user's command and the user's code.
_OURS = (
    str(_PACKAGE / "conformance"),
    str(_PACKAGE / "_trace"),
    str(_PACKAGE / "cli.py"),
    str(_PACKAGE / "pytest_plugin.py"),
    str(Path(importlib.__file__).parent),
    "<frozen importlib",
    "<script>",
    "<make_env>",
)
# Some exceptions have megabytes of text.
_MOST = 20_000


def trace_of(error: BaseException, *, last: int | None = None) -> str:
    """The traceback of an exception from the first frame that is not the kit's.

    Args:
        error: The exception.
        last: The number of innermost frames to keep; None for all.
    """
    theirs = error.__traceback__
    while theirs is not None and _is_ours(theirs):
        theirs = theirs.tb_next
    limit = None if last is None else -last
    shown = theirs or error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, shown, limit=limit))
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]}\n…\n{text[-_MOST // 2 :]}"


def _is_ours(frame: TracebackType) -> bool:
    return is_ours(frame.tb_frame.f_code.co_filename)


def is_ours(filename: str) -> bool:
    """Whether this file belongs to the kit, or to the machinery that it uses."""
    return filename.startswith(_OURS)
