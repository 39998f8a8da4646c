"""What `make endurance` does is able to fail."""

from __future__ import annotations

import pytest

pytest.importorskip("stable_baselines3")

from endurance.faults import run


def test_a_stream_that_is_wrong_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endurance.faults.KINDS", {"processes": {"raise": 1.0}})
    monkeypatch.setattr("tests.parallel.operations.Pair.echo", lambda _: 1 / 0)
    assert len(run("processes", 2)["wrong"]) == 2
