"""The loop of a worker process, over a real pipe, in this process."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from typing import Any

import pytest

from sb3compat._parallel import serve as module
from sb3compat._parallel.messages import Failure, dumps_command
from sb3compat._parallel.serve import serve
from tests.envs import fns


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    # Handlers belong to the main thread.
    monkeypatch.setattr(module.signal, "signal", lambda *_: signal.SIG_DFL)
    ours, theirs = Pipe()
    thread = threading.Thread(target=serve, args=(theirs, None, fns(2)))
    thread.start()
    yield ours
    ours.close()
    thread.join()
    theirs.close()


def ask(pipe: Any, *command: Any) -> Any:
    pipe.send_bytes(dumps_command(*command))
    return pickle.loads(pipe.recv_bytes())


def test_functions_may_come_with_the_process_or_with_the_command(pipe: Any) -> None:
    assert ask(pipe, "make", None, 0).rows == [1, 1]
    assert ask(pipe, "close") is None


def test_command_that_cannot_be_unpickled_is_an_answer(pipe: Any) -> None:
    pipe.send_bytes(b"\x80\x04\x8c\x0bno_such_mod\x8c\x01x\x93.")
    failure = pickle.loads(pipe.recv_bytes())
    assert isinstance(failure, Failure)
    with pytest.raises(ModuleNotFoundError):
        failure.reraise()


def test_closed_pipe_ends_the_worker_and_closes_its_rows(pipe: Any) -> None:
    ask(pipe, "make", None, 0)
