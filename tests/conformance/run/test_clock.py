"""The time of a run."""

from __future__ import annotations

import pytest

from sb3compat.conformance.run.clock import GRACE, Clock


def test_time_passes_within_calls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    clock = Clock(10)
    now += 5
    assert (clock.passed, clock.left) == (0, 10)
    with clock:
        now += 3
        assert clock.passed == 3
        now += 1
    now += 50
    assert (clock.passed, clock.left) == (4, 6)
    assert clock.within(3) == 3
    assert clock.within(100) == 6 + GRACE
    with clock:
        now += 100
        assert 0 < clock.within(100) < 1
