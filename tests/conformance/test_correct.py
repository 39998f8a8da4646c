"""No check accuses a correct environment, of whatever kind."""

from __future__ import annotations

import pytest

from conformance.specimens.environments import ENVIRONMENTS
from sb3compat.conformance.subject.examine import examine
from tests.conformance.checks.test_vector_env import CLOSES
from tests.conformance.kit import TRAINING, bad, judge
from tests.profiles import nightly

# Those that checks have accused, and of the others a sample; nightly all of them.
_KNOWN = (
    "VecEnv-CliffWalking-9", "VecEnv-answers-point", "VecEnv-shared-dict", "VecEnv-pit-7-limits",
    "VecEnv-slip-0.4-int",     "NextStep-grid-3-6-fixed",
)  # fmt: skip
_ONE_IN = 29
NAMES = [
    name
    for number, name in enumerate(ENVIRONMENTS)
    if nightly() or name in _KNOWN or number % _ONE_IN == 0
]


@pytest.mark.parametrize("name", NAMES)
def test_no_check_accuses_it(name: str) -> None:
    if name.startswith("VecEnv"):
        pytest.importorskip("stable_baselines3")
    correct = ENVIRONMENTS[name]
    subject = examine(correct.factory, family=correct.family, seconds=4, **correct.given)
    for seed in range(3 if nightly() else 1):
        found = bad(judge(subject, seconds=0.01, seed=seed, skip=TRAINING))
        assert set(found) <= CLOSES, found


def test_there_are_many_of_both_interfaces() -> None:
    families = [correct.family for correct in ENVIRONMENTS.values()]
    assert min(map(families.count, ("vec_env", "vector_env"))) > 100
