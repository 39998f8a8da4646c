"""The public names and their signatures, held against a snapshot and against the page.

After a change that is meant: `python -m tests.test_public_api` writes the snapshot anew.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sb3compat
import sb3compat.conformance
from sb3compat import conformance, errors
from tests.interpreter import REPOSITORY

SNAPSHOT = Path(__file__).parent / "snapshots" / "public_api.txt"


def described(module: ModuleType) -> Iterator[str]:
    for name in sorted(module.__all__):
        value = getattr(module, name)
        full = f"{module.__name__}.{name}"
        if isinstance(value, type):
            yield from _described_class(full, value)
        elif callable(value):
            yield f"def {full}{_signature(value)}"
        else:
            yield f"{full}: {type(value).__name__}"


def _described_class(full: str, cls: type) -> Iterator[str]:
    if issubclass(cls, BaseException):
        bases = [b.__name__ for b in cls.__mro__[1:] if b not in (object, BaseException)]
        bases = [name for name in bases if not name.startswith("_")]
        yield f"exception {full}({', '.join(bases)})"
        return
    yield f"class {full}{_signature(cls)}"
    own = [base for base in reversed(cls.__mro__) if base.__module__.startswith("sb3compat")]
    members = {name: value for base in own for name, value in vars(base).items()}
    for name, value in sorted(members.items()):
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"    {name}: property{'' if value.fset is None else ', can be set'}"
        elif callable(value):
            yield f"    def {name}{_signature(value)}"


def _signature(value: Any) -> str:
    """The parameters and their defaults; `assert_type` tests hold the annotations."""
    signature = inspect.signature(value)
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def snapshot() -> str:
    lines = [*described(sb3compat), *described(sb3compat.conformance)]
    return "\n".join(lines) + "\n"


def test_public_names_and_signatures_are_those_of_the_snapshot() -> None:
    pytest.importorskip("stable_baselines3", reason="the adapter's base class is SB3's")
    assert snapshot() == SNAPSHOT.read_text(), "after a change that is meant, write it anew"


def test_api_page_names_all_that_is_public() -> None:
    text = (REPOSITORY / "docs" / "reference" / "api.md").read_text()
    documented = set(re.findall(r"auto(?:function|class|exception):: ([\w.]+)", text))
    names = {f"sb3compat.{name}" for name in sb3compat.__all__ if name != "__version__"}
    own = {f"sb3compat.{name}" for name in vars(errors)}  # automodule
    assert "automodule:: sb3compat.errors" in text
    kit = {f"sb3compat.conformance.{name}" for name in conformance.__all__}
    assert documented == names - own | kit


if __name__ == "__main__":
    sys.exit(SNAPSHOT.write_text(snapshot()) == 0)
