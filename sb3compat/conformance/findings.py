"""Findings of checks, and the errors that end a check early.

The lowest layer of the kit: it imports no other module of the kit.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Family = Literal["vec_env", "vector_env"]

FAMILIES: dict[str, str] = {
    "vec_env": "SB3 VecEnv",
    "vector_env": "Gymnasium VectorEnv",
}

NO_REFERENCE = (
    "partly checked: pass the single environments to check fully, --reference "
    "package.module:name, in Python reference=[…]"
)

_MOST_WORDS = 2000
# The most elements of an array that is shown.
_FEW = 12


def family_name(family: str) -> str:
    """The name of an interface with its article."""
    return f"{'an' if family == 'vec_env' else 'a'} {FAMILIES[family]}"


@dataclass(frozen=True)
class Finding:
    """A broken contract: the value, the value expected, and the place.

    Attributes:
        what: The expression that was evaluated.
        got: Its value.
        should: The value expected, in words.
        step: The number of the step; 0 before the first one.
        row: The row concerned, or None.
        bounds: Whether only bounds are wrong, while structure and shapes are right.
    """

    what: str
    got: str
    should: str
    step: int
    row: int | None = None
    bounds: bool = False

    @property
    def place(self) -> str:
        """The step and the row, in words."""
        place = f"step {self.step}" if self.step else "before the first step"
        return place if self.row is None else f"{place}, row {self.row}"


class NotExercisedError(Exception):
    """No program reached the situation that the check is about; its text says why, for the report.

    There is no verdict then.
    """


class MalformedError(NotExercisedError, KeyError, IndexError, TypeError):
    """A result has another structure than its space; the checks of structures report it.

    Args:
        part: The part that is not there, and why.
        whole: The value that has no such part.
        key: The key or index that it does not have; None for another part.
    """

    def __init__(self, part: str, whole: Any, key: object = None) -> None:
        super().__init__(f"a result has another structure than expected: {part}")
        self.whole, self.key = whole, key


class EnvFailureError(Exception):
    """The environment raised an exception where the contract allows none."""

    def __init__(self, line: str, error: BaseException, trace: str) -> None:
        super().__init__(f"{line.strip()} raised {said_by(error)}")
        self.error = error
        self.trace = trace


class CheckError(ValueError):
    """A check that others have written cannot be used; the message says why."""

    __module__ = "sb3compat.conformance"  # where users import it from


class FactoryError(Exception):
    """The factory fails, or returns an object that is not a vector environment."""

    __module__ = "sb3compat.conformance"  # where users import it from


def said_by(error: BaseException) -> str:
    """The type of an exception and its text, which may be empty or megabytes long."""
    try:
        text = str(error)
    except Exception as other:
        text = f"<its str raised {type(other).__name__}>"
    text = text if len(text) <= _MOST_WORDS else f"{text[: _MOST_WORDS - 1]}…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def short(value: object, limit: int = 160) -> str:
    """`repr` on one line, cut."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return cut(text, limit)


def cut(text: str, limit: int) -> str:
    """A text on one line, cut."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def plain(value: object, limit: int = 120) -> str:
    """A value in few characters: plain numbers, and large arrays by their shape and mean."""
    return cut(_plain(value), limit)


def _plain(value: Any) -> str:
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        with suppress(Exception):  # arrays of other libraries
            value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.size > _FEW:
        kind = f"{value.dtype} {'x'.join(map(str, value.shape))}"
        return f"{kind}, mean {value.mean():.4g}" if value.dtype.kind in "biuf" else kind
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return short(value)
