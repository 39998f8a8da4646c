"""Global random generators in another state for each construction of an environment."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

_constructions = 0


def perturb(seed: int) -> Callable[[], None]:
    """A function that puts the global random generators into a new state with each call.

    An environment that draws from them would look as if it heeded its seed if they were in the same
    state for two constructions.
    """

    def reseed() -> None:
        global _constructions
        _constructions += 1
        random.seed(1_000_003 * seed + _constructions)
        np.random.seed((1_000_003 * seed + _constructions) % 2**32)

    return reseed
