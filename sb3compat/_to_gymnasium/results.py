"""What a `VecEnv` has returned: its steps, their form checked, and the infos of its resets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sb3compat._convert.arrays import row_array
from sb3compat._convert.infos import TERMINAL_OBSERVATION, own_info
from sb3compat._convert.types import Array, Flags, Info, Observation, is_own_vec_env
from sb3compat._upstream.vec_env import derives_from, keeps_methods
from sb3compat.errors import ConversionError, shown


class ResetInfos:
    """The infos of the resets of a `VecEnv`.

    They are in the list of the innermost environment: each wrapper has its own list, which SB3's
    wrappers leave empty.

    Args:
        base: The innermost environment.
        num_envs: The number of its rows.
    """

    def __init__(self, base: Any, num_envs: int) -> None:
        self._base, self._n = base, num_envs
        # The dicts in which it has reported the last reset of each row, and whether it reports
        # those within steps as well. A class that we do not know may fill the list in `reset` only.
        self._reported: list[object] = [None] * num_envs
        self._of_sb3 = any(derives_from(base, name) for name in ("DummyVecEnv", "SubprocVecEnv"))
        self._reports_in_steps = is_own_vec_env(base) or any(
            keeps_methods(base, name, "step_wait") for name in ("DummyVecEnv", "SubprocVecEnv")
        )

    def of(self, row: int, *, in_step: bool) -> Info:
        """A copy of the info of the last reset of a row; empty where there is none.

        Args:
            row: The row.
            in_step: Whether that reset was within a step, which may have left the list as it was.
        """
        info = self._listed(row)
        stale = in_step and info is self._reported[row] and not self._reports_in_steps
        self._reported[row] = info
        return own_info(info) if isinstance(info, dict) and not stale else {}

    def check(self, rows: Sequence[int]) -> None:
        """Refuse dicts that have changed before SB3's `VecEnv` was asked for them.

        Args:
            rows: The rows that were reset in this call.

        Raises:
            ConversionError: If a row returned from `reset` the dict that its step had returned, or
                several rows the same dict.
        """
        infos = [info for row in rows if isinstance(info := self._listed(row), dict) and info]
        reused = any(TERMINAL_OBSERVATION in info for info in infos)  # SB3 writes it before a reset
        if self._of_sb3 and (reused or len({*map(id, infos)}) < len(infos)):
            whose = "the dict that its step had returned" if reused else "one dict for several rows"
            raise ConversionError(
                f"Expected each sub-environment of {self._base} to return a new info dict from "
                f"each reset, got {whose}: it is read after the resets of all rows, when its "
                "earlier values are lost. Return a new dict from each step and reset; or adapt a "
                "DummyVecEnv without wrappers, which is read row by row."
            )

    def _listed(self, row: int) -> object:
        infos: Any = getattr(self._base, "reset_infos", None)
        kept = isinstance(infos, list | tuple) and len(infos) == self._n
        return infos[row] if kept else None


def checked_step(
    vec_env: Any, result: Any, num_envs: int
) -> tuple[Observation, Array, Flags, list[Info]]:
    """What a step of a `VecEnv` has returned, with one element for each row in all but the first.

    Rewards keep their dtype.

    Raises:
        ConversionError: If it has another form.
    """
    if not isinstance(result, tuple) or len(result) != 4:
        raise ConversionError(
            f"Expected {vec_env}.step to return (observations, rewards, dones, infos), got "
            f"{shown(result)} ({type(result).__name__} of "
            f"{len(result) if isinstance(result, tuple) else 1}). To adapt an environment with "
            "another interface, write a VecEnv around it."
        )
    observations, rewards, dones, infos = result
    numbers = row_array(rewards, num_envs, "rewards")
    ended = row_array(dones, num_envs, "dones").astype(np.bool_)
    listed = isinstance(infos, list | tuple) and len(infos) == num_envs
    if not listed or not all(issubclass(kind, dict) for kind in set(map(type, infos))):
        raise ConversionError(
            f"Expected infos as a list of {num_envs} dicts, one for each row, got "
            f"infos={shown(infos)} ({type(infos).__name__}). Return an empty dict for a row "
            "without infos."
        )
    return observations, numbers, ended, list(infos)
