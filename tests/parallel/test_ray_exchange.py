"""Waiting for actors in turns, which signal handlers may end."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.interrupts import within

pytestmark = pytest.mark.ray


def test_what_is_ready_is_told_at_once_and_the_rest_by_its_absence(connected: Any) -> None:
    import ray

    from sb3compat._parallel.ray_exchange import not_ready, ready_in_turn

    @ray.remote(num_cpus=0)  # type: ignore[untyped-decorator]
    class Gate:
        def passes(self) -> int:
            return 1

        async def waits(self) -> None:
            import asyncio

            await asyncio.Event().wait()

    gate = Gate.remote()
    passes, waits = gate.passes.remote(), gate.waits.remote()
    with within(60):
        assert not_ready([passes], None) == []
        assert not_ready([passes, waits], 0.1) == [waits]
        assert ready_in_turn([passes, waits], 0.1) == [passes]
    ray.kill(gate)


def test_signal_handler_may_raise(connected: Any) -> None:
    import ray

    from sb3compat._parallel.ray_exchange import not_ready

    @ray.remote(num_cpus=0)  # type: ignore[untyped-decorator]
    class Gate:
        async def waits(self) -> None:
            import asyncio

            await asyncio.Event().wait()

    def alarm(*_: Any) -> None:
        raise KeyboardInterrupt

    gate = Gate.remote()
    waits = gate.waits.remote()
    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            not_ready([waits], None)
    finally:
        signal.signal(signal.SIGALRM, before)
    ray.kill(gate)
