"""Operations and faults in any order, over processes and Ray: `operations.py` says what holds."""

from __future__ import annotations

import gc
import random
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sb3compat._parallel import exchanges, processes, workers
from tests.interrupts import ERRORS
from tests.parallel.echoing import HOWS
from tests.parallel.operations import PATIENT, Pair
from tests.profiles import nightly
from tests.resources import Held, held

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")
pytestmark = pytest.mark.usefixtures("unraisable_is_dropped")

MOST_ROWS = 5
# The kinds of parts by start method: elsewhere than in a fork, some take seconds for their imports.
KINDS: dict[str | None, tuple[str, ...]] = {
    "fork": ("single", "single", "sync", "same_step", "dummy", "async", "nested"),
    "forkserver": ("single", "sync"),
    None: ("single", "sync"),
}
POINTS = {"step": 1500, "reset": 1300, "echo": 900, "set_mark": 900}

numbers = st.integers(0, 9)
actions = st.lists(st.integers(0, 3), min_size=MOST_ROWS, max_size=MOST_ROWS)
errors = st.sampled_from(ERRORS)


class Operations(RuleBasedStateMachine):
    """Over worker processes."""

    kinds = KINDS
    # With the timeout in seconds. Other workers than forks take seconds to start.
    start_methods: tuple[tuple[str | None, float], ...] = (
        ("fork", 0.5), ("fork", PATIENT),
        *([(None, PATIENT), ("forkserver", PATIENT)] if nightly() else ()),
    )  # fmt: skip
    backend: dict[str, Any] = {}

    @initialize(
        data=st.data(), workers=st.integers(1, 3), policy=st.sampled_from(["raise", "restart"])
    )
    def start(self, data: Any, workers: int, policy: str) -> None:
        method, timeout = data.draw(st.sampled_from(self.start_methods))
        part = st.tuples(st.sampled_from(self.kinds[method]), st.integers(1, 2))
        shape = data.draw(st.lists(part, min_size=1, max_size=2))
        kwargs = {**self.backend, "start_method": method, "on_worker_lost": policy}
        kwargs["timeout"] = timeout
        warm(type(self), method)
        self.before = self.held()
        self.folder = tempfile.TemporaryDirectory()
        self.pair = Pair(Path(self.folder.name), shape, workers=workers, **kwargs)
        self.at_close: int | None = None

    def held(self) -> Held:
        return held(alone=True)

    def few(self, values: list[int]) -> list[int]:
        return values[: self.pair.n]

    def rows(self, values: list[int]) -> list[int]:
        return sorted({value % self.pair.n for value in values[:2]})

    @rule(actions=actions)
    def step(self, actions: list[int]) -> None:
        self.pair.step(self.few(actions))

    @rule(actions=actions)
    def step_again(self, actions: list[int]) -> None:
        self.pair.step(self.few(actions))

    @rule(actions=actions)
    def step_async(self, actions: list[int]) -> None:
        self.pair.step_async(self.few(actions))

    @rule()
    def step_wait(self) -> None:
        self.pair.step_wait()

    @rule(seed=st.none() | numbers, x=st.none() | numbers)
    def reset(self, seed: int | None, x: int | None) -> None:
        self.pair.reset(seed, None if x is None else {"x": x})

    @rule(mark=numbers, rows=actions)
    def set_mark(self, mark: int, rows: list[int]) -> None:
        self.pair.set_mark(mark, self.rows(rows))

    @rule(rows=actions)
    def read(self, rows: list[int]) -> None:
        self.pair.read(self.rows(rows))

    @rule(row=numbers, how=st.sampled_from(HOWS))
    def arm(self, row: int, how: str) -> None:
        self.pair.arm(row % self.pair.n, how)

    @rule(which=numbers)
    def kill(self, which: int) -> None:
        self.pair.kill(which)

    @rule(which=numbers)
    def stop(self, which: int) -> None:
        self.pair.stop(which)

    @rule()
    def go(self) -> None:
        self.pair.go()

    @rule(name=st.sampled_from([*POINTS]), at=st.floats(0, 1), error=errors, actions=actions)
    def interrupt(
        self, name: str, at: float, error: type[BaseException], actions: list[int]
    ) -> None:
        self.pair.interrupted(name, 1 + int(at * POINTS[name]), error, self.few(actions))

    @precondition(lambda self: not self.pair.on_ray)
    @rule(at=st.integers(1, 5000), error=errors)
    def interrupt_start(self, at: int, error: type[BaseException]) -> None:
        self.pair.interrupted_start(at, error)

    @rule(at=st.integers(1, 900))
    def interrupt_close(self, at: int) -> None:
        self.at_close = at

    @invariant()
    def nothing_is_owed(self) -> None:
        if hasattr(self, "pair") and not self.pair.stopped:
            self.pair.echo()

    def teardown(self) -> None:
        if not hasattr(self, "pair"):
            return
        note(str(self.pair.endings))
        self.pair.close(self.at_close)
        interrupts = self.pair.interrupts
        del self.pair
        self.folder.cleanup()
        if sys.exc_info()[0] is not None:  # what has failed already holds some of it
            return
        left = [now - then for now, then in zip(self.held(), self.before, strict=True)]
        change = Held(*left)._replace(memory=0)
        # An interrupt within `os.pipe()` or so leaves descriptors of which no Python object knows.
        few = range(2 * interrupts + 1)
        assert max(change.descriptors, 0) in few, change
        assert change == Held(descriptors=change.descriptors), change


@cache
def warm(machine: type[Operations], method: str | None) -> None:
    """Have Python and Ray open what they keep."""
    with tempfile.TemporaryDirectory() as folder:
        kwargs = {**machine.backend, "start_method": method}
        Pair(Path(folder), [("single", 2)], workers=1, **kwargs).close()
    gc.collect()


class OnRay(Operations):
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
    run(Operations, 60 if nightly() else 12, 30 if nightly() else 12)


@pytest.mark.ray
@pytest.mark.usefixtures("connected")
def test_operations_over_ray() -> None:
    # A search each: within one, Hypothesis wants equal programs to end alike, and how they end
    # depends on when an actor dies. The first example of a search is the simplest one.
    for _ in range(16):
        run(seed(random.getrandbits(32))(OnRay), 2, 20)
