"""Messages to Ray actors, which may hang, die, or be waited for in vain."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sb3compat._parallel.messages import Failure, failure_of
from tests.interrupts import within

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'sb3compat[ray]'")
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("connected")]


class Answering:
    """Answers as `RowsActor` does."""

    def run(self, data: bytes) -> Any:
        if data == b"raise":
            return pickle.dumps(failure_of(ValueError("no"), 0, "row 0")), None
        return pickle.dumps(data.decode()), None

    def step(self, actions: Any) -> Any:
        return pickle.dumps(None), actions, 0.5

    async def hang(self) -> None:
        import asyncio

        await asyncio.Event().wait()


@pytest.fixture
def actors(connected: Any) -> Iterator[dict[int, Any]]:
    cls = ray.remote(num_cpus=0)(Answering)
    made = {worker: cls.remote() for worker in range(2)}
    yield made
    for actor in made.values():
        ray.kill(actor)


def hanging(exchange: Any, actors: dict[int, Any]) -> Any:
    """The exchange, after a message that is not answered."""
    exchange.owed[1] = actors[1].hang.remote()
    return exchange


def test_actors_answer_what_they_are_asked_or_are_dead(actors: dict[int, Any]) -> None:
    from sb3compat._parallel.ray_exchange import ActorExchange, not_ready, ready_in_turn

    exchange = ActorExchange(actors, restarts=True)
    exchange.send({0: b"one", 1: [7]})
    with within(60):
        exchange.receive(None)
    assert (exchange.answers, exchange.owed) == ({0: "one", 1: None}, {})
    assert exchange.arrays == {0: (None,), 1: ([7], 0.5)}
    hanging(exchange, actors)
    exchange.send({0: b"raise"})
    exchange.grace_seconds = 0.1
    with within(60):  # the other one gets no longer than that
        exchange.receive(None)
    assert isinstance(exchange.answers[0], Failure)
    assert exchange.arrays[0] == ()
    assert exchange.owed.keys() == {1}
    exchange.answers = {}
    exchange.send({0: b"two"})
    with within(60):
        exchange.receive(2.0)
        assert not_ready([exchange.owed[1]], 0.1) == [exchange.owed[1]]
        done = actors[0].run.remote(b"")
        assert not_ready([done], None) == []
        assert ready_in_turn([done, exchange.owed[1]], 0.1) == [done]
    assert exchange.answers == {0: "two"}
    ray.kill(actors[1])
    with within(60):
        exchange.receive(None)
    assert exchange.dead.keys() == {1}
    assert not exchange.owed
    assert not exchange.failed
    exchange._restarts = False
    assert exchange.failed


def test_signal_handler_may_raise(actors: dict[int, Any]) -> None:
    from sb3compat._parallel.ray_exchange import ActorExchange

    def alarm(*_: Any) -> None:
        raise KeyboardInterrupt

    exchange = hanging(ActorExchange(actors, restarts=False), actors)
    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            exchange.receive(None)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert exchange.owed.keys() == {1}
