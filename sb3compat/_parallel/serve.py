"""The loop of a worker process, and the class of a Ray actor.

A process gets its commands through a pipe, its arrays are in shared memory. To an actor, arrays
come as arguments of its methods and go as results, unless it shares memory with its parent.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from sb3compat._convert.types import Array
from sb3compat._ipc.ready import HAS_POLL, READABLE
from sb3compat._parallel.memory import Place, open_memory, receive_memory
from sb3compat._parallel.messages import dumps_command
from sb3compat._parallel.parts import EnvFn
from sb3compat._parallel.worker import Worker

# The command of which there are most is no pickle.
STEP = b"step"
# The answer to a command, and the new values of `Buffers.results`; a reset has only observations.
# None means that nothing is new, or in memory shared with the parent. A tuple, as a class of ours
# would cost Ray's serializer more.
Ran = tuple[bytes, list[Array] | None]


def serve(
    pipe: Connection[Any, Any],
    env_fns: Sequence[EnvFn] | None = None,
    other: Connection[Any, Any] | None = None,
    notes: Connection[Any, Any] | None = None,
) -> None:
    """Answer commands until the parent closes its end of the pipe, or has ended.

    A command that is running when the parent is killed is finished first.

    Args:
        pipe: This worker's end of the pipe.
        env_fns: The functions that make the parts, where they need not be pickled.
        other: The parent's end of the pipe, which a fork has copied: as long as it is open here,
            this worker would not notice the end of the parent.
        notes: The pipe that takes which function is called.
    """
    if other is not None:
        other.close()
    # Ctrl-C is for the parent. And the parent's handlers are not for this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):  # they had to wait while this process was started
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    worker = Worker(
        lambda size, name: receive_memory(pipe, size, name), env_fns, partial(_note, notes)
    )
    worker.pid = os.getpid()
    look = None
    if HAS_POLL:
        poll = select.poll()
        poll.register(pipe.fileno(), READABLE)
        look = partial(poll.poll, 0)
    try:
        while _answer(pipe, worker, look):
            pass
    except (EOFError, OSError):  # the parent is gone
        if worker.is_copy:
            raise
        worker.run(dumps_command("close"))


def _answer(pipe: Connection[Any, Any], worker: Worker, look: Callable[[], object] | None) -> bool:
    """Answer one command; False if it was the last one."""
    if worker.spin and look:
        worker.spin.look(look)
    data = pipe.recv_bytes()
    name, answer = ("step", worker.step()) if data == STEP else worker.run(data)
    if worker.is_copy:
        sys.exit()
    pipe.send_bytes(answer)
    return name != "close"


def _note(notes: Connection[Any, Any] | None, function: int) -> None:
    if notes is not None:
        with suppress(OSError):  # the pipe is full, or the parent is gone
            os.write(notes.fileno(), b"%d\n" % function)


def main(number: int, notes: int | None = None) -> None:
    """Serve as a process of its own, the pipes being these file descriptors."""
    notebook = None if notes is None else Connection(notes, readable=False)
    serve(Connection(number), notes=notebook)


class RowsActor:
    """The rows of one worker; `ray.remote` makes an actor of it.

    Methods return views of its arrays: Ray writes them into its object store before it runs the
    next method.
    """

    def __init__(self) -> None:
        self._worker = Worker(_memory_of_node)

    def run(self, data: bytes) -> Ran:
        """The answer to a command."""
        name, answer = self._worker.run(data)
        if name != "reset" or self._worker.shares:
            return answer, None
        return answer, self._own(self._worker.buffers.observations)

    def step(self, actions: list[Array] | None) -> Ran:
        """Step all rows; without actions where these are in shared memory."""
        if actions is None:
            return self._worker.step(), None
        out = self._worker.buffers
        for array, values in zip(self._own(out.actions), actions, strict=True):
            array[...] = values
        return self._worker.step(), self._own(out.results)

    def _own(self, arrays: list[Array]) -> list[Array]:
        return [array[self._worker.rows] for array in arrays]


def _memory_of_node(size: int, way: tuple[str, Place | None]) -> Any:
    """The memory of the parent, if that is on this node."""
    node, place = way
    return open_memory(place, size) if place is not None and node == node_id() else None


def node_id() -> str:
    """The node of the Ray cluster that this process runs on."""
    import ray

    node: str = ray.get_runtime_context().get_node_id()
    return node
