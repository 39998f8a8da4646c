"""Worker processes as a team: exchanges, restarts, ends."""

from __future__ import annotations

import threading

import pytest

from sb3compat._parallel import processes
from tests.parallel.known import Known
from tests.parallel.teams import children, forked


def test_hanging_close_is_ended_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Known):
        def close(self) -> None:
            threading.Event().wait()

    monkeypatch.setattr(processes, "_END_SECONDS", 0.1)
    env = forked([lambda: Hanging(0)], timeout=0.2)
    with pytest.warns(UserWarning, match=r"environments of row 0 have not closed within timeout=0"):
        env.close()
    assert not children()
