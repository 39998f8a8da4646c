"""How many cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sb3compat._parallel import cores
from sb3compat._parallel.cores import usable_cores


@pytest.fixture(autouse=True)
def _sixteen_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "process_cpu_count", lambda: 16, raising=False)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"": "max 100000"}, 16),
        ({"": "200000 100000"}, 2),
        ({"": "max 100000", "a": "350000 100000", "a/b": "max 100000"}, 4),
        ({"a": "800000 100000", "a/b": "50000 100000"}, 1),
        ({"other": "100000 100000"}, 16),
        ({}, 16),
    ],
)
def test_limits_of_control_groups_are_heeded(
    limits: dict[str, str], expected: int, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    for folder, text in limits.items():
        write(tmp_path / "root" / folder / "cpu.max", text)
    assert usable_cores(tmp_path / "root", own) == expected


def test_without_control_groups_the_affinity_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "process_cpu_count")
    found = usable_cores(tmp_path, tmp_path / "none")
    if hasattr(os, "sched_getaffinity"):
        assert found == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores.usable_cores(tmp_path, tmp_path / "none") == 1
