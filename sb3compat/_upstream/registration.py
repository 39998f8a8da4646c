"""What `gymnasium.make` finds in the registry."""

from __future__ import annotations

from gymnasium.envs import registration

from sb3compat._upstream.private import private


def spec_of(env_id: str) -> registration.EnvSpec:
    """The spec that `gymnasium.make` takes for an id, with its warnings.

    Raises:
        Exception: What `gymnasium.make` raises if there is none.
    """
    spec: registration.EnvSpec = private(registration, "_find_spec")(env_id)
    return spec
