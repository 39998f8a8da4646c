"""Programs as text: what a check does to an environment is the script that shows it again.

Each statement is run as it is written down. When a check fails, the statements up to there,
with the assertion that failed, are the reproduction.
"""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from copy import deepcopy
from types import CodeType
from typing import Any

import numpy as np

from sb3compat.conformance.contract import EnvFailureError, ViolationError, short

_CODE: dict[tuple[str, str], CodeType] = {}


def equal(a, b):  # type: ignore[no-untyped-def]
    """Whether two observations, infos or results are the same, all the way down."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    try:
        a, b = np.asarray(a), np.asarray(b)
    except ValueError:
        return a is b
    if a.dtype == object or b.dtype == object:
        if a.shape == b.shape == ():
            return a.item() is b.item() or bool(a.item() == b.item())
        return a.shape == b.shape and all(map(equal, a.ravel().tolist(), b.ravel().tolist()))
    same_nan = a.dtype.kind in "fc" and b.dtype.kind in "fc"
    return np.array_equal(a, b, equal_nan=same_nan)


def row(batch, i):  # type: ignore[no-untyped-def]
    """Row i of a batch of observations."""
    if isinstance(batch, dict):
        return {key: row(part, i) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(row(part, i) for part in batch)
    return batch[i]


def inside(space, value):  # type: ignore[no-untyped-def]
    """Whether a single observation has the structure, shapes and bounds of its space."""
    parts = getattr(space, "spaces", None)
    if isinstance(parts, dict):
        return (
            isinstance(value, dict)
            and value.keys() == parts.keys()
            and all(inside(parts[key], value[key]) for key in parts)
        )
    if parts is not None:
        return (
            isinstance(value, tuple) and len(value) == len(parts) and all(map(inside, parts, value))
        )
    value = np.asarray(value)
    if value.shape != space.shape or not np.can_cast(value.dtype, space.dtype, "same_kind"):
        return False
    return space.contains(value.astype(space.dtype)[()])


def caught(function):  # type: ignore[no-untyped-def]
    """The exception that a call raises, or None."""
    try:
        function()
    except Exception as error:
        return error


def overwrite(value):  # type: ignore[no-untyped-def]
    """Write into every array, list and dict within, as far as they let us."""
    if isinstance(value, dict):
        for part in list(value.values()):
            overwrite(part)
        value["written by the caller"] = True
    elif isinstance(value, (list, tuple)):
        for part in value:
            overwrite(part)
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        value[...] = None if value.dtype == object else 1


PRELUDE: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (equal, row, inside, caught, overwrite)
}


class Script:
    """Statements, run one after the other and written down.

    Args:
        factory: Makes the environment; called `make_env` in the script.
        reference: The factories of the single environments, if the user gave them.
        before_make: Called before each construction.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        reference: Any = None,
        before_make: Callable[[], None] = lambda: None,
    ) -> None:
        def make_env() -> Any:
            before_make()
            env = factory()
            self.opened.append(env)
            return env

        self.opened: list[Any] = []
        self.lines: list[str] = []
        self.steps = 0
        self.namespace: dict[str, Any] = {
            "np": np,
            "deepcopy": deepcopy,
            "make_env": make_env,
            "reference": reference,
            **PRELUDE,
        }

    def run(self, text: str) -> None:
        """Run a statement, on one line or several.

        Raises:
            EnvFailureError: If it raises.
        """
        self.lines.append(text)
        try:
            exec(_compiled(text, "exec"), self.namespace)
        except Exception as error:
            trace = "".join(traceback.format_exception(error, limit=-12))
            raise EnvFailureError(text, error, trace) from error

    def value(self, expression: str) -> Any:
        """The value of an expression, which is not written down."""
        return eval(_compiled(expression, "eval"), self.namespace)

    def let(self, name: str, value: Any) -> None:
        """Assign a value that can be written down as source."""
        self.run(f"{name} = {to_source(value)}")

    def demand(self, condition: str, what: str, should: str, at_row: int | None = None) -> None:
        """Go on if the condition holds.

        Args:
            condition: An expression over what the script has assigned.
            what: The expression whose value is named in the message.
            should: What it should have been, in words.
            at_row: The row that it is about.

        Raises:
            ViolationError: If the condition does not hold, or cannot be evaluated.
        """
        because = ""
        try:
            if self.value(condition):
                return
        except Exception as error:
            because = f" ({type(error).__name__}: {error})"
        try:
            got = short(self.value(what))
        except Exception as error:
            got = f"<{type(error).__name__}: {error}>"
        place = f"step {self.steps}" if self.steps else "before the first step"
        if at_row is not None:
            place += f", row {at_row}"
        message = f"{what}={got}, but should be {should} [{place}]{because}"
        self.lines.append(f"assert {condition}, {message!r}")
        raise ViolationError(message)

    def close(self) -> None:
        """Close every environment that was opened."""
        while self.opened:
            env = self.opened.pop()
            try:
                env.close()
            except Exception:  # checks of closing close for themselves
                continue

    def source(self, make_env: str, title: str) -> str:
        """The whole as a standalone script.

        Args:
            make_env: Source that defines `make_env` (and `reference`, if it is used).
            title: The docstring.
        """
        body = _folded(self.lines)
        text = "\n".join(body)
        used = {name for name in PRELUDE if re.search(rf"\b{name}\(", text)}
        used |= {"row"} & used
        functions = [_source_of(PRELUDE[name]) for name in PRELUDE if name in used]
        imports = ["import numpy as np"]
        if "deepcopy(" in text:
            imports.insert(0, "from copy import deepcopy\n")
        parts = [f'"""{title}"""', "\n".join(imports), make_env.strip(), *functions, text]
        return "\n\n".join(part for part in parts if part) + "\n"


def to_source(value: Any) -> str:
    """Python source for a number, string, array, or dict, list or tuple of them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {to_source(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(to_source, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(to_source, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.ndarray):
        if value.size and value.ndim and (value == value.flat[0]).all():
            return f"np.full({value.shape}, {value.flat[0].item()!r}, {_dtype(value.dtype)})"
        return f"np.array({value.tolist()!r}, {_dtype(value.dtype)})"
    if isinstance(value, np.generic):
        return f"{_dtype(value.dtype)}({value.item()!r})"
    return repr(value)


def _dtype(dtype: np.dtype[Any]) -> str:
    return "np.bool_" if dtype == np.bool_ else f"np.{dtype}"


def _compiled(text: str, mode: str) -> CodeType:
    if (text, mode) not in _CODE:
        if len(_CODE) > 5000:
            _CODE.clear()
        _CODE[text, mode] = compile(text, "<script>", mode)
    return _CODE[text, mode]


def _folded(lines: list[str]) -> list[str]:
    """Lines that repeat become a loop: one line, or two that alternate."""
    folded: list[str] = []
    i = 0
    while i < len(lines):
        for width in (1, 2, 3):
            block = lines[i : i + width]
            times = 1
            while lines[i + times * width : i + (times + 1) * width] == block:
                times += 1
            if times > 2 or (times > 1 and width == 1):
                inner = "\n".join(block).replace("\n", "\n    ")
                folded.append(f"for _ in range({times}):\n    {inner}")
                i += times * width
                break
        else:
            folded.append(lines[i])
            i += 1
    return folded


def _source_of(function: Callable[..., Any]) -> str:
    source = inspect.getsource(function).replace("  # type: ignore[no-untyped-def]", "")
    return re.sub(r'\n    """.*?"""', "", source, count=1, flags=re.S).strip()
