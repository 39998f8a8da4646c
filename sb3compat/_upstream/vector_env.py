"""What every `VectorEnv` keeps for itself: its own random generator."""

from __future__ import annotations

import numpy as np

from sb3compat._convert.types import AnyVectorEnv
from sb3compat._upstream.private import private


def set_generator(env: AnyVectorEnv, generator: np.random.Generator) -> None:
    """Replace the vector environment's own generator; its seed is unknown from then on."""
    private(env, "_np_random")
    private(env, "_np_random_seed")
    env._np_random, env._np_random_seed = generator, -1
