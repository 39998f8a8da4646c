"""Scripts: statements that run one after the other, and the text that reproduces a failure."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache, partial
from textwrap import indent
from types import CodeType
from typing import Any

import numpy as np

from sb3compat.conformance.findings import EnvFailureError, NotExercisedError
from sb3compat.conformance.program import long_runs, prelude
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.trace import trace_of

# The file name in tracebacks of statements.
SCRIPT = "<script>"
_CODE: dict[tuple[str, str], CodeType] = {}

# A step of the environment, and a statement that makes a new environment.
_STEPS = re.compile(r"\benv\.step(?:_wait)?\(")
_MAKES = re.compile(r"env\b[\w, ]*= make_env\(")

PRELUDE: dict[str, Callable[..., Any]] = {
    name: function
    for module in (prelude, long_runs)
    for name, function in vars(module).items()
    if inspect.isfunction(function) and function.__module__ == module.__name__
}

# Names that statements may use without importing them.
_IMPORTS = {
    "deepcopy": "from copy import deepcopy",
    "partial": "from functools import partial",
}


class Script:
    """Statements that run one after the other, with new instances.

    Args:
        instances: Where the environment comes from; called `make_env` in the statements.
        before_make: Called before each construction.
        before_run: Called with each statement before it is run.

    Attributes:
        steps: The number of steps of the newest `env`.
        namespace: The names of the statements.
    """

    def __init__(
        self,
        instances: Instances,
        before_make: Callable[[], None] = lambda: None,
        before_run: Callable[[str], None] = lambda text: None,
    ) -> None:
        def make_env() -> Any:
            before_make()
            env, _ = instances.take(len(self._opened), new=True)
            self._opened.append(env)
            return env

        self.steps = 0
        self._opened: list[Any] = []
        self._instances, self._before_run = instances, before_run
        self.namespace: dict[str, Any] = {
            "np": np,
            "deepcopy": deepcopy,
            "partial": partial,
            "make_env": make_env,
            "reference": instances.reference,
            **PRELUDE,
        }

    def run(self, text: str) -> None:
        """Run a statement, on one line or several.

        Raises:
            EnvFailureError: If it raises.
            NotExercisedError: If it needs a second instance, which cannot be made.
        """
        if _MAKES.match(text):
            self.steps = 0
        self.steps += len(_STEPS.findall(text))
        self._before_run(text)
        if text.startswith("del "):  # a reference of ours would keep the instance
            deleted = self.namespace[text[4:]]
            self._opened = [env for env in self._opened if env is not deleted]
            del deleted
        try:
            exec(_compiled(text, "exec"), self.namespace)
        except NotExercisedError:
            raise
        except (Exception, SystemExit) as error:
            raise EnvFailureError(text, error, trace_of(error, last=12)) from error

    def value(self, expression: str) -> Any:
        """The value of an expression over the names of the statements."""
        return eval(_compiled(expression, "eval"), self.namespace)

    def close(self) -> None:
        """Close every environment that was opened."""
        names = {id(value): name for name, value in self.namespace.items()}
        for env in reversed(self._instances.give_back(self._opened, keep=False)):
            self._before_run(f"{names.get(id(env), 'env')}.close()")
            self._instances.end(env)
        self._opened = []


def standalone(lines: Sequence[str], make_env: str, title: str, *, guarded: bool = False) -> str:
    """Statements as a script that runs by itself.

    Args:
        lines: The statements.
        make_env: Source that defines `make_env` (and `reference`, if it is used).
        title: The docstring.
        guarded: Whether to put the statements under `if __name__ == "__main__":`. Worker processes
            that import the script need that.
    """
    text = "\n".join(_folded(lines))
    if guarded:
        text = f'if __name__ == "__main__":\n{indent(text, "    ")}'
    functions = [_source_of(PRELUDE[name]) for name in _used(text)]
    whole = "\n".join([*functions, text])
    imports = [line for name, line in _IMPORTS.items() if _calls(whole, name)]
    imports = [*imports, "", "import numpy as np"] if imports else ["import numpy as np"]
    parts = [f'"""{title}"""', "\n".join(imports), make_env.strip(), *functions, text]
    return "\n\n".join(part for part in parts if part) + "\n"


def _calls(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}\(|\bmap\({name},", text) is not None


def _used(text: str) -> list[str]:
    """The helpers that a script calls, and the helpers that these call."""
    used: list[str] = []
    texts = [text]
    while texts:
        text = texts.pop()
        for name in PRELUDE:
            if name not in used and _calls(text, name):
                used.append(name)
                texts.append(_source_of(PRELUDE[name]))
    return [name for name in PRELUDE if name in used]


def to_source(value: object) -> str:
    """Source for a number, a string, an array, or a dict, list or tuple of them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {to_source(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(to_source, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(to_source, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.ndarray):
        if value.size and value.ndim and (value == value.flat[0]).all():
            return (
                f"np.full({value.shape}, {to_source(value.flat[0].item())}, {_dtype(value.dtype)})"
            )
        return f"np.array({to_source(value.tolist())}, {_dtype(value.dtype)})"
    if isinstance(value, np.generic):
        return f"{_dtype(value.dtype)}({to_source(value.item())})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


@cache
def _dtype(dtype: np.dtype[Any]) -> str:
    return "np.bool_" if dtype == np.bool_ else f"np.{dtype}"


def _compiled(text: str, mode: str) -> CodeType:
    if (text, mode) not in _CODE:
        if len(_CODE) > 5000:
            _CODE.clear()
        _CODE[text, mode] = compile(text, SCRIPT, mode)
    return _CODE[text, mode]


def _folded(lines: Sequence[str]) -> list[str]:
    """The lines, with loops for repeated blocks of up to four lines."""
    folded: list[str] = []
    i = 0
    while i < len(lines):
        for width in (1, 2, 3, 4):
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


def _source_of(function: Callable[..., object]) -> str:
    return re.sub(r'\n    """.*?"""', "", inspect.getsource(function), count=1, flags=re.S).strip()
