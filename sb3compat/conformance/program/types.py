"""Types for code that neither the kit nor its type checker knows: the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# The kit is to find out what a factory makes, so its type promises nothing.
Factory: TypeAlias = Callable[[], Any]
# One for each row.
Reference: TypeAlias = Sequence[Factory]
