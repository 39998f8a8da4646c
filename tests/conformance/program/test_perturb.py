"""The global random generators."""

from __future__ import annotations

import numpy as np

from sb3compat.conformance.program.perturb import perturb


def test_each_construction_finds_another_global_random_state() -> None:
    reseed = perturb(seed=3)
    draws = []
    for _ in range(3):
        np.random.seed(0)
        reseed()
        draws.append(np.random.uniform())
    assert len(set(draws)) == 3
