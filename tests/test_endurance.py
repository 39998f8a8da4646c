"""The page `make endurance` writes: each part in small, and what is made of it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("stable_baselines3")

from endurance.faults import run
from endurance.page import page
from endurance.soak import SOURCES, soak


def test_page_says_what_the_parts_have_found(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"processes": {"raise": 0.5, "kill": 0.5}}
    monkeypatch.setattr("endurance.faults.KINDS", few)
    faults: dict[str, Any] = {"processes": run("processes", 4)}
    soaked = {name: soak(SOURCES[name], 20) for name in ("sync", "processes")}
    text = page(soaked, faults, 60, 1.0)
    assert not faults["processes"]["wrong"]
    for part in (
        "| `ParallelVecEnv`, two processes | 5,120 |",
        "## 4 faults",
        "| kill, processes | 2 |",
        "**Wrong values: 0. Calls that hung: 0.**",
    ):
        assert part in text


def test_a_stream_that_is_wrong_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("endurance.faults.KINDS", {"processes": {"raise": 1.0}})
    monkeypatch.setattr("tests.parallel.operations.Pair.echo", lambda _: 1 / 0)
    assert len(run("processes", 2)["wrong"]) == 2
