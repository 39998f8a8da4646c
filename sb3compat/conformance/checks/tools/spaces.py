"""Parts of spaces and of batches, and demands on observations."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from sb3compat.conformance.play import Play


def leaves(space: Any, path: str = "") -> list[tuple[str, Any]]:
    """The simple spaces within a space, each with the source of the index that leads there."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return [(path, space)]
    parts = space.spaces
    items = parts.items() if isinstance(parts, dict) else enumerate(parts)
    return [leaf for key, part in items for leaf in leaves(part, f"{path}[{key!r}]")]


def arrays(space: Any) -> list[tuple[str, Any]]:
    """The simple spaces whose batches are arrays: no texts or graphs."""
    return [(path, leaf) for path, leaf in leaves(space) if leaf.shape is not None]


def at(play: Play, name: str, i: int | str | None) -> str:
    """Source for row i of a batch: observations, unless it is called `actions`, or by results.

    Without a row the source has `{}` in its place.
    """
    i = "{}" if i is None else i
    if name.split("_")[-1] in ("rewards", "terminations", "truncations"):
        return f"{name}[{i}]"
    space = "single_action_space" if name == "actions" else "single_observation_space"
    single = play.value(f"env.{space}")
    if not isinstance(single, spaces.Dict | spaces.Tuple):
        return f"{name}[{i}]"
    return f"part(env.{space}, {name}, {i})"


def obs_of(play: Play, i: int, name: str = "obs") -> str:
    """Source for row i of a batch of observations, of either interface."""
    return f"row({name}, {i})" if play.family == "vec_env" else at(play, name, i)
