"""Which `reset_infos` of a wrapped `VecEnv` belong to the last reset of a row.

SB3's wrappers have a list of their own, which stays empty. A user's wrapper may fill it in `reset`,
where it counts; it is then out of date for rows that were reset within a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sb3compat._convert.infos import own_info
from sb3compat._convert.options import same_value
from sb3compat._convert.types import Info, is_own_vec_env
from sb3compat._upstream.vec_env import passes_seeds_and_options

_NAME = "reset_infos"


class ResetInfos:
    """Reads the infos of resets, from the outermost layer that has written them.

    Args:
        vec_env: The environment, with its wrappers.
    """

    def __init__(self, vec_env: Any) -> None:
        n = vec_env.num_envs
        *wrappers, base = _chain(vec_env)
        self._wrappers = [_Layer(wrapper, n) for wrapper in wrappers]
        self._base = _Layer(base, n)
        # These write them in each reset; others may leave them as they were.
        self._base_writes = passes_seeds_and_options(base) or is_own_vec_env(base)

    def after_reset(self) -> list[Info]:
        """The infos of all rows, after `reset` of the `VecEnv`."""
        written = [layer for layer in self._wrappers if layer.writes_in_reset()]
        chosen = written[0] if written else self._base
        infos = [chosen.info(row) for row in range(chosen.num_envs)]
        for layer in (*self._wrappers, self._base):
            layer.remember()
        return infos

    def within_step(self, row: int) -> Info:
        """The info of a row that was reset within the last step; empty where nothing wrote it."""
        layers = [*self._wrappers, self._base]
        written = [layer for layer in layers if layer.wrote(row)]
        for layer in written:
            layer.remember_row(row)
        if written:
            return written[0].info(row)
        return self._base.info(row) if self._base_writes else {}


class _Layer:
    """A wrapper or the base, and what its `reset_infos` were when they were last looked at."""

    def __init__(self, vec_env: Any, num_envs: int) -> None:
        self.num_envs = num_envs
        self._vec_env = vec_env
        self._writes_in_reset = False
        # The dicts themselves, and copies of them. A dict may be written to in place.
        self._seen: list[tuple[Info | None, Info]] = [(None, {})] * num_envs
        self.remember()

    def info(self, row: int) -> Info:
        """A copy of the info of a row."""
        found = self._find(row)
        return {} if found is None else own_info(found)

    def wrote(self, row: int) -> bool:
        """Whether the info of a row is another one than before."""
        found, (seen, copied) = self._find(row), self._seen[row]
        return found is not None and (found is not seen or not same_value(dict(found), copied))

    def writes_in_reset(self) -> bool:
        """Whether the last reset, or one before, has written them; to ask after each reset."""
        written = any(map(self.wrote, range(self.num_envs)))
        self._writes_in_reset = self._writes_in_reset or written
        return self._writes_in_reset

    def remember(self) -> None:
        """Take note of what is there now."""
        for row in range(self.num_envs):
            self.remember_row(row)

    def remember_row(self, row: int) -> None:
        """Take note of what is there now for a row."""
        self._seen[row] = self._find(row), self.info(row)

    def _find(self, row: int) -> Info | None:
        # Not by getattr alone, by which SB3's wrappers answer for the VecEnv inside.
        own = _NAME in getattr(self._vec_env, "__dict__", ()) or hasattr(type(self._vec_env), _NAME)
        infos = getattr(self._vec_env, _NAME, None) if own else None
        if not isinstance(infos, list | tuple) or len(infos) != self.num_envs:
            return None
        info = infos[row]
        return info if isinstance(info, dict) else None


def _chain(vec_env: Any) -> Iterator[Any]:
    while hasattr(vec_env, "venv"):
        yield vec_env
        vec_env = vec_env.venv
    yield vec_env
