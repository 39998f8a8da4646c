"""Parts of spaces."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces


def leaves(space: Any, path: str = "") -> list[tuple[str, Any]]:
    """The simple spaces within a space, each with the source of the index that leads there."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return [(path, space)]
    parts = space.spaces
    items = parts.items() if isinstance(parts, dict) else enumerate(parts)
    return [leaf for key, part in items for leaf in leaves(part, f"{path}[{key!r}]")]
