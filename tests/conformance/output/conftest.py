from __future__ import annotations

import pytest


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.delenv("NO_COLOR", raising=False)
    # It is about streams that nobody reads at a terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    return monkeypatch
