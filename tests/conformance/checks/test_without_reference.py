"""Mistakes that show without single environments, by the environment's own symmetry."""

from __future__ import annotations

import pytest

from conformance.specimens.broken.vec_env import MUTANTS
from sb3compat.conformance.subject.examine import examine
from tests.conformance.kit import judge
from tests.conformance.tiny import TinyVecEnv

pytest.importorskip("stable_baselines3")


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        ("TerminalObservationIsStale", "terminal_observation_is_last"),
        ("ObsAfterDoneIsZeros", "obs_after_done_is_reset_obs"),
        ("ActionsInReverse", "rows_independent"),
        ("IgnoresTheActionAfterAnEnd", "no_phantom_transition"),
        ("OthersFreezeWhileOneResets", "rows_independent"),
    ],
)
def test_it_is_found_under_each_seed(mutant: str, check: str) -> None:
    subject = examine(MUTANTS[mutant].factory)
    for seed in range(3):
        result = judge(subject, seconds=0.2, seed=seed, only=[check])[check]
        assert result.status == "failed", (seed, result)


def test_a_seed_for_each_row_is_seen() -> None:
    assert examine(MUTANTS["ActionsInReverse"].factory, seconds=None).capabilities["row_seeds"]
    assert not examine(TinyVecEnv, seconds=None).capabilities["row_seeds"]
