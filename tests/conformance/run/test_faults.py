"""Hangs and crashes: which are the same, and the shortest program that shows one."""

from __future__ import annotations

from collections.abc import Sequence

from sb3compat.conformance.run.child import ChildFailureError
from sb3compat.conformance.run.faults import Fault, shrunk

OPENING = ["env = make_env()", "env.seed(3)", "obs = env.reset()"]


def test_a_fault_names_the_call() -> None:
    message, stack = "timeout: no answer within 30 s", '  File "x.py", line 3 in wait'
    lines = ["env = make_env()", "obs, rewards, dones, infos = env.step([0, 0])"]
    fault = Fault.of(ChildFailureError(message, stack, lines=lines))
    assert fault.message == "timeout: no answer within 30 s, in env.step([0, 0])"
    assert fault.kind == ("timeout", "step", "wait")
    assert Fault.of(ChildFailureError(message)).message == message


def test_the_same_call_in_another_program_is_the_same_fault() -> None:
    def fault(line: str, cause: str = "SIGSEGV", function: str = "render") -> Fault:
        stack = f'  File "x.py", line 3 in {function}'
        return Fault.of(ChildFailureError("crashed", stack, cause=cause, lines=[line]))

    first = fault("obs, rewards, dones, infos = env.step(1)").kind
    assert fault("results = []\nerror = caught(lambda: results.append(env.step(2)))").kind == first
    assert fault("env.step(1)", cause="SIGABRT").kind != first
    assert fault("env.step(1)", function="other").kind != first
    assert fault("obs = env.reset()").kind != first


def test_what_comes_between_the_opening_and_the_fault_is_left_out() -> None:
    lines = [*OPENING, *["env.step(1)"] * 40, "env.render()"]
    assert shrunk(lines, lambda fewer: True) == (*OPENING, "env.render()")


def test_a_fault_after_some_steps_keeps_those() -> None:
    runs = 0

    def faulty(lines: Sequence[str]) -> bool:
        nonlocal runs
        runs += 1
        return lines.count("env.step(1)") >= 9 and list(lines[:3]) == OPENING

    lines = [*OPENING, *["env.step(1)"] * 40, "env.render()"]
    found = shrunk(lines, faulty)
    assert faulty(found)
    assert len(found) < len(lines) / 2
    assert runs <= 5  # each run may take seconds


def test_a_program_that_does_not_repeat_stays() -> None:
    lines = [*OPENING, "env.step(1)", "env.render()"]
    assert shrunk(lines, lambda fewer: False) == tuple(lines)
    assert shrunk(OPENING, lambda fewer: False) == tuple(OPENING)
