"""Correct environments by an author who had not read the checks: none is accused."""

from __future__ import annotations

import pytest

pytest.importorskip("stable_baselines3", reason="some are of stable-baselines3")

from conformance.specimens.unseen.registry import CORRECT
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from tests.profiles import nightly, some

# First one whose episodes do not end while the kit looks on.
NAMES = ["Marathon", *(name for name in CORRECT if name != "Marathon")]


@pytest.mark.parametrize("name", some(NAMES, 1))
def test_correct_environment_is_not_accused(name: str) -> None:
    only = () if nightly() else ("no_phantom_transition", "rows_independent")
    report = run(CORRECT[name].make, options=Options(isolate=False, only=only))
    failed = {result.check_id for result in report.failures()}
    assert failed - CORRECT[name].rightly.keys() == set()
