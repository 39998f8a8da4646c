"""Operations and faults in any order, over processes and Ray: `operations.py` says what holds."""

from __future__ import annotations

import gc
import random
import sys
import threading
from functools import cache
from typing import Any

import pytest
from hypothesis import Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

from sb3compat._parallel import exchanges, processes, workers
from tests.profiles import nightly
from tests.resources import Held, held

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

from tests.parallel.operations import PATIENT, Operations

pytestmark = pytest.mark.usefixtures("unraisable_is_dropped")


# The kinds of parts by start method: elsewhere than in a fork, some take seconds for their imports.
KINDS: dict[str | None, tuple[str, ...]] = {
    "fork": ("single", "single", "sync", "same_step", "dummy", "async", "nested"),
    "forkserver": ("single", "sync"),
    None: ("single", "sync"),
}


class OverProcesses(Operations):
    """Over worker processes."""

    kinds = KINDS
    # With the timeout in seconds. Other workers than forks take seconds to start.
    start_methods: tuple[tuple[str | None, float], ...] = (
        ("fork", 0.5), ("fork", PATIENT),
        *([(None, PATIENT), ("forkserver", PATIENT)] if nightly() else ()),
    )  # fmt: skip

    @initialize(
        data=st.data(), workers=st.integers(1, 3), policy=st.sampled_from(["raise", "restart"])
    )
    def start(self, data: Any, workers: int, policy: str) -> None:
        method, timeout = data.draw(st.sampled_from(self.start_methods))
        part = st.tuples(st.sampled_from(self.kinds[method]), st.integers(1, 2))
        shape = data.draw(st.lists(part, min_size=1, max_size=2))
        warm(type(self), method)
        self.before = self.held()
        kwargs = {"start_method": method, "on_worker_lost": policy, "timeout": timeout}
        self.set_up(shape, workers=workers, **kwargs)

    def held(self) -> Held:
        return held(alone=True)

    def teardown(self) -> None:
        if not hasattr(self, "ours"):
            return
        note(str(self.endings))
        self.close(self.at_close)
        del self.ours, self.theirs, self.workers
        self.folder.cleanup()
        if sys.exc_info()[0] is not None:  # what has failed already holds some of it
            return
        left = [now - then for now, then in zip(self.held(), self.before, strict=True)]
        change = Held(*left)._replace(memory=0)
        # An interrupt within `os.pipe()` or so leaves descriptors of which no Python object knows.
        few = range(2 * self.interrupts + 1)
        assert max(change.descriptors, 0) in few, change
        assert change == Held(descriptors=change.descriptors), change


@cache
def warm(machine: type[Operations], method: str | None) -> None:
    """Have Python and Ray open what they keep."""
    made = machine()
    made.set_up([("single", 2)], workers=1, start_method=method)
    made.close()
    made.folder.cleanup()
    del made
    gc.collect()


class OnRay(OverProcesses):
    """Over actors of a Ray cluster."""

    # The process of a row is that of its actor.
    kinds = {None: ("single", "single", "sync", "same_step", "dummy")}
    start_methods = ((None, 3.0), (None, PATIENT))
    backend = {"backend": "ray", "actor_options": {"num_cpus": 0.5}}

    def held(self) -> Held:
        # Ray's core starts threads of its own when it has much to do.
        return super().held()._replace(threads=threading.active_count())


def run(machine: type[Operations], number: int, steps: int) -> None:
    # To shrink what takes seconds, and depends on when a process dies, would take hours.
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    chosen = settings(max_examples=number, stateful_step_count=steps, phases=phases)
    run_state_machine_as_test(machine, settings=chosen)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long others may take once one has failed, or at the end; stopped workers take it all."""
    monkeypatch.setattr(exchanges.WorkerExchange, "grace_seconds", 0.5)
    monkeypatch.setattr(workers, "_CLOSE_SECONDS", 0.5)
    monkeypatch.setattr(processes, "_END_SECONDS", 0.5)


def test_operations_over_processes() -> None:
    run(OverProcesses, 60 if nightly() else 12, 30 if nightly() else 12)


@pytest.mark.ray
@pytest.mark.usefixtures("connected")
def test_operations_over_ray() -> None:
    # A search each: within one, Hypothesis wants equal programs to end alike, and how they end
    # depends on when an actor dies. The first example of a search is the simplest one.
    for _ in range(16):
        run(seed(random.getrandbits(32))(OnRay), 2, 20)
