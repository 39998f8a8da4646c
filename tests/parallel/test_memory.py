"""The arrays of a step in shared memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from sb3compat._parallel import memory
from sb3compat._parallel.memory import Segment


def test_memory_without_memfd_is_a_file_without_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: str) -> int:
        raise OSError("not here")

    monkeypatch.setattr(memory.os, "memfd_create", refuse, raising=False)
    monkeypatch.setattr(memory.tempfile, "tempdir", str(tmp_path))
    segment = Segment(1000)
    segment.memory[0] = 1
    assert not list(tmp_path.iterdir())
    segment.close()
