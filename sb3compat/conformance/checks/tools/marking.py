"""How the checks of a module are registered."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from sb3compat.conformance.contract import Function, check
from sb3compat.conformance.findings import Family


class _Mark(Protocol):
    """A decorator like `check`, some of whose arguments are given already."""

    def __call__(self, **given: Any) -> Callable[[Function], Function]: ...


def marked(family: Family, **common: Any) -> tuple[_Mark, _Mark]:
    """The decorators of errors and of warnings, with the arguments that most of them have."""
    mark = partial(check, family, **common)
    return partial(mark, severity="error"), partial(mark, severity="warning")
