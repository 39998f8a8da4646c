"""The global random generators."""

from __future__ import annotations

import numpy as np
import pytest

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.run.perturb import perturb
from tests.conformance import tiny
from tests.conformance.runs import here, statuses


def test_each_construction_finds_another_global_random_state() -> None:
    reseed = perturb(seed=3)
    draws = []
    for _ in range(3):
        np.random.seed(0)
        reseed()
        draws.append(np.random.uniform())
    assert len(set(draws)) == 3


def test_drawing_from_the_global_random_state_fails() -> None:
    name = "same_seed_same_trajectory"
    if name not in {check.id for check in checks_of("vec_env")}:
        pytest.skip("there is no such check")
    assert statuses(here(tiny.Noisy, only=(name,))) == ["failed"]
