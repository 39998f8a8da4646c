"""ale-py's `AtariVectorEnv`: `options["reset_mask"]` resets just those rows, and returns all.

Its autoreset does the same, with one exception: with `life_loss_info`, a lost life is reported as a
termination, but the game continues.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from sb3compat._convert.types import (
    AnyVectorEnv,
    Flags,
    VectorInfos,
    VectorResetResult,
)
from sb3compat._to_sb3.partial_reset import (
    refuse_partial_batches,
    reset_with_mask,
)
from sb3compat.errors import UnsupportedEnvError, shown

_INSTEAD = (
    "Use episodic_life=True, which starts a new game after a lost life, or AtariEnv with SB3's "
    "AtariWrapper in each row, which continues the game"
)


_WATCHED = ("lives", "episode_frame_number")


class LivesWatch:
    """Refuses terminations by a lost life if the game continues, or may continue.

    The environment does not tell its settings. In SAME_STEP mode, the frame numbers tell if the
    game goes on. In NEXT_STEP mode, a new game can only be detected one step too late.
    """

    def __init__(self, env: AnyVectorEnv, mode: AutoresetMode) -> None:
        self._env, self._mode = env, mode
        self._before: VectorInfos | None = None

    def reset(self, infos: VectorInfos) -> None:
        """Store the lives and frame numbers, copied: a wrapper may change the infos."""
        self._before = {key: np.array(infos[key]) for key in _WATCHED if key in infos}

    def step(self, terminations: Flags, truncations: Flags, infos: VectorInfos) -> None:
        """Refuse such a termination, or take note of the lives and frame numbers."""
        before = self._before
        self.reset(infos)
        ended = terminations & ~truncations
        if before is None or not ended.any():
            return
        lost = ended & (infos["lives"] < before["lives"])
        if self._mode == AutoresetMode.SAME_STEP:
            key = "episode_frame_number"
            lost &= infos[key] > before[key]
            if lost.any():
                raise _plays_on(
                    self._env, f"rows {shown(np.flatnonzero(lost).tolist())} have lost a life"
                )
        elif (lost & (infos["lives"] > 0)).any():
            raise UnsupportedEnvError(
                f"Expected to know what {self._env} does after a lost life, but it was built "
                "directly, and does not show whether it starts a new game (episodic_life=True) or "
                "continues the game (life_loss_info=True, which cannot be adapted). Build it with "
                "gymnasium.make_vec('ALE/...', episodic_life=True), whose spec shows it, or with "
                "autoreset_mode=AutoresetMode.SAME_STEP, where the frame numbers show it."
            )


def watch_lives(env: Any, mode: AutoresetMode) -> LivesWatch | None:
    """Refuse `life_loss_info`; if the environment's spec does not tell, look at its endings."""
    refuse_partial_batches(env, env.batch_size)
    spec = getattr(env, "spec", None)
    if spec is None:
        return LivesWatch(env, mode)
    if spec.kwargs.get("life_loss_info") and not spec.kwargs.get("episodic_life"):
        raise _plays_on(env, "its spec has life_loss_info=True")
    return None


def _plays_on(env: AnyVectorEnv, reason: str) -> UnsupportedEnvError:
    return UnsupportedEnvError(
        f"Expected {env} to start a new game when it reports the end of an episode, but the game "
        f"continues, as with life_loss_info=True: {reason}. SB3 would treat these rows as reset. "
        f"{_INSTEAD}."
    )


class ResetRows:
    """Resets the rows in the mask."""

    keeps_others = True
    largest_seed = 2**31 - 1
    needs_valid_actions = True
    watch = staticmethod(watch_lives)

    def __call__(self, env: Any, mask: Flags) -> VectorResetResult:
        """Reset the rows in the mask."""
        return reset_with_mask(env, mask)
