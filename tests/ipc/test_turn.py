"""A call that comes within another one: it is answered or refused, and the other one goes on."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from functools import partial
from threading import Event, Thread, get_ident
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

import sb3compat
from sb3compat._ipc.turn import Turn, _Call
from sb3compat.errors import CallOrderError
from tests.envs import Identity
from tests.interrupts import attempt, count, counting, within
from tests.lockstep import same
from tests.lockstep_back import dummy, subproc
from tests.parallel.teams import forked
from tests.profiles import nightly
from tests.vec_wrappers import HandsOn

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "reset": lambda env: env.reset(),
    "step": lambda env: env.step(np.array([2, 0, 1])),
    "get_attr": lambda env: env.get_attr("mark"),
}


# Each with what it has to equal.
MADE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "parallel": (lambda fns: forked(fns, 2), dummy),
    "parent": (lambda fns: forked(fns, 2, parent_steps=True), dummy),
    "async": (lambda fns: sb3compat.to_sb3(AsyncVectorEnv(fns)), dummy),
    "wrapped async": (lambda fns: sb3compat.to_sb3(Identity(AsyncVectorEnv(fns))), dummy),
    "subproc": (
        lambda fns: sb3compat.to_gymnasium(subproc(fns)),
        lambda fns: sb3compat.to_gymnasium(dummy(fns)),
    ),
    "wrapped subproc": (
        lambda fns: sb3compat.to_gymnasium(HandsOn(subproc(fns))),
        lambda fns: sb3compat.to_gymnasium(HandsOn(dummy(fns))),
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_call_at_any_point_of_another_changes_nothing(name: str) -> None:
    make, reference = MADE[name]
    env, alike = make(counting(3)), reference(counting(3))
    for operation, run in OPERATIONS.items():
        total = count(lambda run=run: run(env))
        run(alike)
        for at in np.linspace(1, total, 200 if nightly() else 25).astype(int).tolist():
            answers: list[Any] = []

            def ask(answers: list[Any] = answers) -> None:
                answers.append(attempt(lambda: list(env.get_attr("row")), CallOrderError)[0])

            got, where = within(lambda run=run: run(env), at, ask)
            assert all(answer in (None, [0, 1, 2]) for answer in answers), where
            same(got, run(alike), f"{operation}, point {at} of {total}: {where}")


def test_call_of_another_thread_waits() -> None:
    env, alike = forked(counting(3), 2), dummy(counting(3))
    same(env.reset(), alike.reset())
    answers: list[Any] = []
    threads = [Thread(target=lambda: answers.append(env.get_attr("row"))) for _ in range(4)]
    for thread in threads:
        thread.start()
        env.env_method("add", 1)
    for thread in threads:
        thread.join()
    assert answers == [[0, 1, 2]] * 4
    same(env.step([0, 1, 2]), alike.step([0, 1, 2]))


def test_patience_is_for_each_single_call(monkeypatch: pytest.MonkeyPatch) -> None:
    turn, made, done, ready = Turn(), list[_Call](), Event(), Event()
    monkeypatch.setattr(sys, "_current_frames", None)  # some versions of Python may hang in it

    def call() -> None:
        made.append(_Call(sys._getframe(), get_ident(), os.getpid()))
        ready.set()
        done.wait()

    other = Thread(target=call)
    other.start()
    ready.wait()
    calls: list[Any] = [*(made[0]._replace() for _ in range(60)), None]

    def another(_: float) -> None:
        turn._calls.clear()
        turn._calls |= {"call": calls.pop(0)} if calls[0] else {}

    clock = itertools.count()
    monkeypatch.setattr("sb3compat._ipc.turn.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sb3compat._ipc.turn.time.sleep", another)
    another(0)
    turn.check()  # 60 calls of another thread, each for a second or two
    turn._calls["call"] = made[0]
    monkeypatch.setattr("sb3compat._ipc.turn.time.sleep", lambda _: None)
    with pytest.raises(CallOrderError, match="one call at a time"):
        turn.check()
    # In a fork, the threads that made the calls are gone.
    turn._calls["call"] = made[0]._replace(process=os.getpid() + 1)
    turn.check()
    turn._calls["call"] = made[0]
    done.set()
    other.join()
    turn.check()  # the call has ended, and left its traces behind
    assert not turn._calls


def test_threads_may_close_at_once() -> None:
    errors: list[Any] = []
    for _ in range(10):
        env = forked(counting(2), 2)
        env.reset()
        close = partial(lambda env: errors.append(attempt(env.close, Exception)[1]), env)
        threads = [Thread(target=close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == [None] * 40
