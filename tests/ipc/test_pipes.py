"""Exchanges with real worker processes, which answer, hang and die as they are told."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest

from sb3compat._ipc import framing
from sb3compat._ipc import ready as ready_module
from sb3compat._ipc.pipes import (
    Exchange,
    InterruptedMessageError,
    died,
    pickled,
)
from sb3compat._ipc.ready import Line, PollReady, WaitReady
from tests.interrupts import LimitError, count, interrupt, no_hang, raised_by
from tests.ipc.pipe_workers import LONG, Workers
from tests.profiles import nightly


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    with no_hang():
        yield workers
    workers.end()


WAYS = [WaitReady, PollReady] if hasattr(select, "poll") else [WaitReady]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def make(request: Any, workers: Workers) -> Callable[[], Exchange]:
    class Chosen(Exchange):
        ready_class = request.param
        grace_seconds = 0.0

    return lambda: Chosen(workers.lines)


Make = Callable[[], Exchange]
POSIX = pytest.mark.skipif(not hasattr(select, "poll"), reason="Windows has pipes of its own")


def started(exchange: Exchange, **commands: Any) -> Exchange:
    """Send each row a command: `_0="wait"`."""
    exchange.send({int(row[1:]): pickled((what, row)) for row, what in commands.items()})
    return exchange


def test_rows_that_answer_later_do_not_hold_up_the_others(make: Make) -> None:
    exchange = started(make(), _0="wait", _1="wait")
    # The last opens the gate for the others once its answer, longer than a pipe, was sent.
    exchange.send({2: pickled(("open", LONG))})
    exchange.receive(60)
    assert exchange.answers == {0: ("wait", "_0"), 1: ("wait", "_1"), 2: ("open", LONG)}
    assert (exchange.owed, exchange.dead) == ({}, {})


def test_answer_of_a_worker_that_has_ended_since_is_taken(make: Make, workers: Workers) -> None:
    exchange = started(make(), _0="answer", _1="answer and die")
    workers.processes[1].join()
    exchange.receive()
    assert exchange.answers == {0: ("answer", "_0"), 1: ("answer and die", "_1")}
    assert exchange.dead == {}
    exchange = started(make(), _1="answer")
    exchange.receive()
    assert list(exchange.dead) == [1]


# What each row is told, how long their answers may take, and the rows that answer and have died.
OUTCOMES: dict[str, tuple[dict[str, str], float | None, list[int], list[int]]] = {
    "others are not waited for after a death": ({"_0": "wait", "_1": "die"}, None, [], [1]),
    "longer than any wait": ({"_0": "wait", "_1": "open"}, 1e12, [0, 1], []),
    "for ever": ({"_0": "wait", "_1": "open"}, float("inf"), [0, 1], []),
    "in no time": ({"_0": "wait", "_1": "answer", "_2": "wait"}, 0.0, [1], []),
}
if hasattr(select, "poll"):
    # Workers 0 and 1 hold the other end of worker 2's pipe, which so does not end.
    OUTCOMES["killed in the middle of an answer"] = ({"_2": "half and die"}, 60.0, [], [2])
    OUTCOMES["half an answer"] = ({"_0": "half and stop", "_1": "answer"}, 0.2, [1], [])


@pytest.mark.parametrize("name", OUTCOMES)
def test_who_has_answered_is_owed_or_dead(make: Make, workers: Workers, name: str) -> None:
    told, timeout, answering, dead = OUTCOMES[name]
    exchange = started(make(), **told)
    if "answer" in told.values():
        workers.pipes[1].poll(None)
    exchange.receive(timeout)
    assert exchange.answers == {row: (told[f"_{row}"], f"_{row}") for row in answering}
    assert list(exchange.dead) == dead
    assert all(isinstance(error, EOFError | OSError) for error in exchange.dead.values())
    # Who owes an answer has not died because another one has.
    late = {int(row[1:]) for row in told} - {*answering, *dead}
    assert {*exchange.owed} == late
    if not dead and "half and stop" not in told.values():
        workers.gate.set()
        exchange.receive(60.0)
        assert exchange.answers.keys() == {*answering, *late}


def test_answers_that_cannot_be_read_are_an_error_once_all_have_come(make: Make) -> None:
    exchange = started(make(), _1="odd", _2="odd")
    exchange.grace_seconds = 60.0
    exchange.receive()
    with pytest.raises(ValueError, match="not a number"):
        exchange.taken()
    assert (exchange.is_settled, exchange.taken()) == (True, {})


@pytest.mark.parametrize("message", ["short", "same", LONG], ids=["short", "same", "long"])
def test_message_to_a_dead_worker_whose_pipe_another_holds(
    make: Make, workers: Workers, message: Any
) -> None:
    workers.processes[1].kill()
    workers.processes[1].join()
    exchange = make()
    exchange.grace_seconds = 60.0
    if message == "same":
        exchange.send_same((0, 1), pickled(("answer", 0)))
    else:
        exchange.send({0: pickled(("answer", 0)), 1: pickled(("answer", message))})
    exchange.receive()  # sending a short one shows nothing
    assert list(exchange.dead) == [1]
    assert (exchange.owed, exchange.answers) == ({}, {0: ("answer", 0)})


@POSIX
def test_broken_pipe_among_others_is_a_death_and_the_others_get_their_message(
    workers: Workers,
) -> None:
    pipe, other = multiprocessing.Pipe()
    other.close()
    lines = {**workers.lines, 1: Line(pipe, workers.processes[1])}
    exchange = Exchange(lines)
    exchange.grace_seconds = 60.0
    exchange.send_same((0, 1, 2), pickled(("answer", 0)))
    assert list(exchange.dead) == [1]
    exchange.receive()
    assert (exchange.owed, exchange.answers) == ({}, dict.fromkeys((0, 2), ("answer", 0)))
    pipe.close()


@POSIX
@pytest.mark.parametrize(
    ("size", "same"), [(1, False), (1, True), (200_000, False)], ids=["short", "same", "long"]
)
def test_exception_at_any_point_leaves_every_message_accounted_for(
    make: Make, workers: Workers, size: int, same: bool
) -> None:
    def ask(exchange: Exchange, number: int) -> None:
        message = pickled(("answer", f"{number}," * size))
        if same:
            exchange.send_same((0, 1), message)
        else:
            exchange.send(dict.fromkeys((0, 1), message))
        exchange.receive(60.0)

    total = count(lambda: ask(make(), 0))
    every = 1 if nightly() and size == 1 else max(1, total // (200 if nightly() else 40)) | 1
    interrupted = 0
    rounds = [range(start, total + 1, every) for start in range(1, every + 1)]
    for number, at in enumerate(chain.from_iterable(rounds)):
        if interrupted and number >= len(rounds[0]):
            break  # the points of one round may all miss the system calls that write
        exchange = make()
        exchange.grace_seconds = 60.0
        interrupt(lambda exchange=exchange, at=at: ask(exchange, at), at, KeyboardInterrupt)
        exchange.receive(60.0)
        assert not exchange.owed, at
        # One that was being taken is lost with the exception; none is another's.
        expected = [("answer", f"{at}," * size)] * len(exchange.answers)
        assert list(exchange.answers.values()) == expected, at
        if exchange.dead:  # of which is not known how much of its message has arrived
            assert {*map(type, exchange.dead.values())} == {InterruptedMessageError}, at
            interrupted += 1
            workers.renew()
            continue
        exchange.answers.clear()
        ask(exchange, -at)
        assert exchange.answers == dict.fromkeys((0, 1), ("answer", f"{-at}," * size)), at
    assert interrupted


@pytest.mark.parametrize("blocked", [False, True])
def test_error_of_a_handler_is_no_sign_of_death(make: Make, blocked: bool) -> None:
    exchange, messages = make(), {0: pickled(("signal", os.getpid()))}
    if blocked:  # row 2 reads nothing, so that its message cannot have been sent by then
        started(make(), _2="wait")
        messages[2] = pickled(("answer", LONG))
    with raised_by(signal.SIGUSR1, LimitError), pytest.raises(LimitError):  # noqa: PT012
        exchange.send(messages)  # the signal may come already here
        exchange.receive()
    assert {0} <= {*exchange.owed}
    assert (exchange.answers, exchange.dead) == ({}, {})


@POSIX
def test_timeout_covers_a_message_that_is_not_read(make: Make) -> None:
    stuck = started(make(), _1="wait")
    exchange = make()
    # The short ones need no time to be sent.
    messages = {0: pickled(("answer", 0)), 1: pickled(("answer", LONG))}
    exchange.send({**messages, 2: pickled(("answer", 2))}, timeout=0.2)
    assert set(exchange.unsent) == {1}
    for row in (0, 2):
        exchange.receive_one(row)
    exchange.receive(timeout=0.2)
    assert sorted(exchange.answers) == [0, 2]
    assert set(exchange.owed) == {1}
    assert set(stuck.owed) == {1}


@pytest.mark.parametrize("size", [0, 1, 3, 4, 65531, 65532, 65533, 65536, 70000, 1_000_000])
def test_answers_of_all_sizes(make: Make, size: int) -> None:
    exchange = make()
    exchange.send({row: pickled(("answer", bytes(size + row))) for row in range(3)})
    exchange.receive()
    assert exchange.answers == {row: ("answer", bytes(size + row)) for row in range(3)}


def test_size_of_a_message_beyond_two_gigabytes_is_written_and_read() -> None:
    for size in (0, 1, 2**31 - 1, 2**31, 2**40):
        start = framing.header(size)
        assert framing.body_of(start) == (size, len(start))
        assert all(framing.body_of(start[:end]) is None for end in range(len(start)))


@POSIX
@pytest.mark.parametrize("noticed", [True, False])
def test_exception_at_any_point_of_a_loss_leaves_no_answer_outstanding(
    make: Make, workers: Workers, noticed: bool
) -> None:
    def owing() -> Exchange:
        exchange = make()
        exchange.grace_seconds = 1.0
        exchange.expect(1)
        return exchange

    def lose(exchange: Exchange) -> None:
        if noticed:
            exchange.receive()
        exchange.forget(1)

    started(make(), _1="die").receive()
    workers.processes[1].join()
    counted = owing()
    total = count(lambda: lose(counted))
    for at in range(1, total + 1):
        exchange = owing()
        interrupt(lambda exchange=exchange: lose(exchange), at, KeyboardInterrupt)
        exchange.receive(60.0)
        assert not exchange.owed, at
        exchange.forget(1)
        assert not exchange.dead, at


def test_more_workers_than_windows_waits_for_are_waited_for_in_turn(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready_module, "_MOST_WORKERS", 1)

    class Chosen(Exchange):
        ready_class = WaitReady

    exchange = started(Chosen(workers.lines), _0="wait", _1="answer", _2="open")
    exchange.receive()
    assert sorted(exchange.answers) == [0, 1, 2]
    exchange = started(Chosen(workers.lines), _0="hang")
    exchange.receive(timeout=0.05)
    assert exchange.answers == {0: ("hang", "_0")}


def test_a_worker_whose_message_was_interrupted_is_not_said_to_be_dead() -> None:
    text = str(died(3, InterruptedMessageError("an interrupt has come")))
    assert "row 3 can no longer be used: an interrupt has come. Close" in text
    assert "has died" in str(died(3, EOFError()))
