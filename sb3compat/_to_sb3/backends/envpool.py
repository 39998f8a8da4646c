"""EnvPool's Gymnasium environments: rows are reset by index, which returns only these rows.

A reset by index starts a new game. The autoreset may continue the old one: with `episodic_life`, an
episode ends with a life. So rows that have ended are stepped alone, which triggers their autoreset,
whatever the action. Both cancel the autoreset that is pending, as of EnvPool 1.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import create_empty_array

from sb3compat._convert.types import Flags, VectorResetResult
from sb3compat._to_sb3.partial_reset import refuse_partial_batches


class ResetRows:
    """Resets the rows in the mask by index; `restart` triggers the autoreset of ended rows."""

    needs_valid_actions = True

    def watch(self, env: Any, _: AutoresetMode) -> None:
        """Refuse an asynchronous environment."""
        refuse_partial_batches(env, env.config["batch_size"])

    def __call__(self, env: Any, mask: Flags) -> VectorResetResult:
        """Reset by index, and copy the results into full batches."""
        return _spread([env.reset(_ids(mask))], env.num_envs)

    def restart(self, env: Any, mask: Flags, ended: Flags) -> VectorResetResult:
        """Step the rows that have ended, reset the others."""
        own, others = mask & ended, mask & ~ended
        parts = []
        if own.any():
            actions = create_empty_array(env.single_action_space, int(own.sum()), np.zeros)
            obs, _, _, _, infos = env.step(actions, _ids(own))
            parts.append((obs, infos))
        if others.any():
            parts.append(env.reset(_ids(others)))
        return _spread(parts, env.num_envs)


def _ids(mask: Flags) -> Any:
    return np.flatnonzero(mask).astype(np.int32)


def _spread(parts: list[VectorResetResult], num_envs: int) -> VectorResetResult:
    """Results of different rows as full batches."""
    rows = [infos["env_id"] for _, infos in parts]

    def spread(values: list[Any]) -> Any:
        first = values[0]
        if isinstance(first, dict):
            return {key: spread([value[key] for value in values]) for key in first}
        if not (isinstance(first, np.ndarray) and len(first) == len(rows[0])):
            return first
        full = np.zeros((num_envs, *first.shape[1:]), first.dtype)
        for at, value in zip(rows, values, strict=True):
            full[at] = value
        return full

    return spread([obs for obs, _ in parts]), spread([infos for _, infos in parts])
