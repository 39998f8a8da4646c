"""How a process ended, in words."""

from __future__ import annotations

import signal

from sb3compat.conformance.run.death import cause_of_death


def test_a_signal_has_a_name() -> None:
    assert cause_of_death(-signal.SIGSEGV) == "SIGSEGV"
    assert cause_of_death(-1000) == "signal 1000"
    assert cause_of_death(7) == "exit code 7"
