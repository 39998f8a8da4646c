"""The mutants: a sample of them; `make matrix` runs all."""

from __future__ import annotations

import pytest

from conformance.specimens.registry import Specimen
from sb3compat.conformance.subject.examine import examine
from tests.conformance.kit import TRAINING, judge, sampled
from tests.envs import GYMNASIUM

SOURCE = """
from conformance.specimens import every
from conformance.specimens.registry import SPECIMENS

make_env = SPECIMENS["mutant", {0!r}].factory
reference = SPECIMENS["mutant", {0!r}].reference
"""
# What older versions of Gymnasium do to every VectorEnv.
CLOSES = {"wrapper_deletion_keeps_env_open"} if GYMNASIUM < (1, 3) else set()
MUTANTS = [*sampled("vec_env"), *sampled("vector_env")]

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is already wrapped with a .Monitor.:UserWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_fails_its_own_checks_and_no_others(mutant: Specimen) -> None:
    if mutant.family == "vec_env":
        pytest.importorskip("stable_baselines3")
    subject = examine(mutant.factory, seconds=60, **mutant.given)
    results = judge(
        subject,
        thorough=mutant.fails,
        # Long enough for all programs, so that no clock has a say in what is found.
        thorough_seconds=30,
        # Training takes most of the time, and is much the same for each.
        skip=TRAINING - mutant.fails,
        make_env=SOURCE.format(mutant.id),
    )
    failed = {k: r for k, r in results.items() if r.status in ("failed", "errored")}
    found = {k: r.message + r.trace for k, r in failed.items()}
    assert mutant.fails <= failed.keys() <= mutant.fails | mutant.may_fail | CLOSES, found
    for check_id in mutant.fails:
        result = failed[check_id]
        assert result.status == "failed", found
        assert ", but should be " in result.message
        _fails_as_it_says(result.reproduction, result.message)


def _fails_as_it_says(reproduction: str, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        exec(compile(reproduction, "<reproduction>", "exec"), {"__name__": "__main__"})
    # Addresses, times and what is drawn at random differ.
    assert str(caught.value).partition("=")[0] == message.partition("=")[0]
