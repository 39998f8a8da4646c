"""EnvPool's Gymnasium environments: rows are reset by index, and only those come back.

`reset` on some rows cancels the autoreset that is pending for them, as of EnvPool 1.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3compat._convert.types import Flags, Options, Value, VectorResetResult
from sb3compat._to_sb3.partial_reset import register_by_name


def reset_rows(
    env: Any, mask: Flags, *, seed: Value = None, options: Options | None = None
) -> VectorResetResult:
    """Reset by index, and spread the results over full batches."""
    if seed is not None or options:
        raise ValueError(
            "Expected neither seed nor options, as EnvPool takes none in a reset, got "
            f"seed={seed}, options={options}. Pass them to envpool.make."
        )
    obs, infos = env.reset(np.flatnonzero(mask).astype(np.int32))
    rows, n = infos["env_id"], env.num_envs

    def spread(value: object) -> Value:
        if isinstance(value, dict):
            return {key: spread(item) for key, item in value.items()}
        if not (isinstance(value, np.ndarray) and len(value) == len(rows)):
            return value
        full = np.zeros((n, *value.shape[1:]), value.dtype)
        full[rows] = value
        return full

    return spread(obs), spread(infos)


register_by_name("envpool.python.gymnasium_envpool.GymnasiumEnvPoolMixin", reset_rows)
