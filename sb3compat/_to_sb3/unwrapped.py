"""Drive an environment without wrappers directly: one call for a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from sb3compat._convert.arrays import to_numpy
from sb3compat._convert.types import (
    Action,
    Flags,
    Options,
    VectorInfos,
    VectorResetResult,
    VectorStepResult,
)
from sb3compat._to_sb3.bases import Base
from sb3compat._to_sb3.partial_reset import PartialReset, ending_watch, reset_with_mask
from sb3compat._to_sb3.rows import reset_kwargs
from sb3compat.errors import ConversionError


class Unwrapped:
    """Steps and resets a vector environment that has no wrappers.

    Args:
        base: The environment, and what is known of it.
        mode: Its autoreset mode.
        partial_reset: How to reset some of its rows.

    Attributes:
        env: That environment.
        own_keys: The info keys that the environment itself gave; None for all of them.
        flags: The terminations and truncations of the last step; None after a reset.
    """

    own_keys: Mapping[str, Flags | None] | None = None

    def __init__(self, base: Base, mode: AutoresetMode, partial_reset: PartialReset | None) -> None:
        self.base, self.env = base, base.env
        self._mode, self._partial_reset = mode, partial_reset
        self._watch = ending_watch(base.env, mode)
        self._resets_rows = base.resets_rows
        # Where endings are watched, the infos of resets are as well.
        restart_rows = getattr(partial_reset, "restart_rows", None)
        self.restart_rows = restart_rows if self._watch is None else None
        self.flags: tuple[Any, Any] | None = None

    def pending(self) -> Flags | None:
        """The rows that have ended and wait for a reset; None where that is not known."""
        known = self.base.pending()
        if known is not None:
            return known
        if self.base.must_be_reset:
            return None
        if self._mode != AutoresetMode.NEXT_STEP:
            # In DISABLED mode, to step such a row is an error of the environment.
            return np.zeros(self.env.num_envs, np.bool_)
        pending = getattr(self._partial_reset, "pending", None)
        return None if pending is None else np.asarray(pending(self.env), np.bool_)

    def step(self, actions: Action) -> VectorStepResult:
        """Step all rows, and check the form of the result."""
        self.flags = None
        result = checked_step(self.base.step(actions), self.env)
        if self._watch is not None:
            self._watch.step(*result[2:])
        self.flags = result[2], result[3]
        return result

    def reset(self, seed: Any, options: Sequence[Options]) -> VectorResetResult:
        """Reset all rows.

        Args:
            seed: One for all rows, one for each row, or None.
            options: Those of each row; they differ only where each row can be reset alone.
        """
        self.flags = None
        n = self.env.num_envs
        if self._resets_rows:
            seeds = seed if isinstance(seed, Sequence) else [seed] * n
            if isinstance(seed, int | np.integer):
                seeds = [seed + i for i in range(n)]
            result = self.base.reset_rows(None, list(map(reset_kwargs, seeds, options)))
        else:
            result = self.base.call(self.env.reset, seed=seed, options=options[0] or None)
            after_reset = getattr(self._partial_reset, "after_reset", None)
            if after_reset is not None:
                after_reset(self.env)
        return self._noted(result)

    def reset_rows(self, mask: Flags) -> VectorResetResult:
        """Reset some rows; those that the environment itself has ended, as it does itself."""
        function, flags = self._partial_reset, self.flags
        self.flags = None  # rows are restarted once
        if self._resets_rows and function in (None, reset_with_mask):
            rows = np.flatnonzero(mask).tolist()
            return self._noted(self.base.reset_rows(rows, [{}] * self.env.num_envs))
        assert function is not None
        restart = getattr(function, "restart", None)
        if restart is None or flags is None:
            return self._noted(self.base.call(function, self.env, mask))
        ended = np.logical_or(*map(to_numpy, flags))
        return self._noted(self.base.call(restart, self.env, mask, ended))

    def render(self) -> Any:
        """The frames of the environment."""
        return self.base.render()

    def check_endings(self, ended: Flags, *, any_row: bool) -> None:
        """There are no wrappers that could hide or add an ending."""

    def check_others(self, before: Any, after: Any, rows: Any) -> None:
        """There are no wrappers that could treat a masked reset as a reset of all rows."""

    def _noted(self, result: Any) -> VectorResetResult:
        """The result of a reset, its form checked."""
        checked = checked_reset(result, self.env)
        if self._watch is not None:
            self._watch.reset(checked[1])
        return checked


def checked_step(result: Any, env: object) -> VectorStepResult:
    """What a step has returned.

    Raises:
        ConversionError: If it is of another form than Gymnasium's.
    """
    if not (isinstance(result, tuple) and len(result) == 5):
        raise ConversionError(
            f"Expected {env}.step to return (observations, rewards, terminations, "
            f"truncations, infos), got {_form(result)}."
        )
    _check_infos(result[4])
    return result


def checked_reset(result: Any, env: object) -> VectorResetResult:
    """What a reset has returned.

    Raises:
        ConversionError: If it is of another form than Gymnasium's.
    """
    if not (isinstance(result, tuple) and len(result) == 2):
        raise ConversionError(
            f"Expected {env}.reset to return (observations, infos), got {_form(result)}."
        )
    _check_infos(result[1])
    return result


def _form(result: Any) -> str:
    length = len(result) if isinstance(result, Sequence) else "?"
    return f"{type(result).__name__} of length {length}"


def _check_infos(infos: VectorInfos) -> None:
    if not isinstance(infos, Mapping):
        raise ConversionError(
            f"Expected infos to be a dict of arrays, got {type(infos).__name__}. to_sb3 makes "
            "the list of dicts itself: remove the wrapper that does so."
        )
