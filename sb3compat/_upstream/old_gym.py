"""Environments of the old `gym`, which SB3 converts by shimmy."""

from __future__ import annotations

import sys

from sb3compat._convert.types import Value


def converted(env: Value) -> Value:
    """What SB3's `DummyVecEnv` and `make_vec_env` make of an environment of the old `gym`.

    Anything else is returned as it is, and SB3 is not imported for it.

    Raises:
        ImportError: If SB3 or shimmy is missing.
    """
    old = getattr(sys.modules.get("gym"), "Env", None)
    if not isinstance(old, type) or not isinstance(env, old):
        return env
    # Here, as workers do without SB3 and torch.
    from sb3compat._upstream.sb3 import patched_env

    return patched_env(env)
