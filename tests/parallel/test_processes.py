"""Worker processes as a team: exchanges, restarts, ends."""

from __future__ import annotations

import threading

import pytest

from sb3compat._parallel import processes
from tests.parallel.known import Known
from tests.parallel.teams import children, forked
from tests.resources import held


def test_closed_environment_holds_no_descriptors_but_that_of_its_memory() -> None:
    envs, descriptors = [], []
    for _ in range(2):  # the first one may start helpers of Python's own
        envs.append(forked([lambda: Known(0)] * 2, workers=2))
        envs[-1].close()
        descriptors.append(held(alone=True).descriptors)
    # Arrays that were handed out may be views of the memory.
    assert descriptors[1] - descriptors[0] == 1


def test_hanging_close_is_ended_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Known):
        def close(self) -> None:
            threading.Event().wait()

    monkeypatch.setattr(processes, "_END_SECONDS", 0.1)
    env = forked([lambda: Hanging(0)], timeout=0.2)
    with pytest.warns(UserWarning, match=r"environments of row 0 have not closed within timeout=0"):
        env.close()
    assert not children()
