"""What runs in a worker process: commands come through a pipe, arrays are in shared memory."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from sb3compat._parallel.held import NOTHING, HeldRows
from sb3compat._parallel.memory import Shapes, buffers_in, receive_memory
from sb3compat._parallel.parts import EnvFn

# The command of which there are most is no pickle.
STEP = b"step"


def serve(
    pipe: Connection[Any, Any],
    env_fns: Sequence[EnvFn] | None = None,
    others: Sequence[Connection[Any, Any]] = (),
) -> None:
    """Answer commands until the parent closes its end of the pipe, or is gone.

    Args:
        pipe: This worker's end of the pipe.
        env_fns: The functions that make the parts, where they need not be pickled.
        others: Ends of pipes that a fork has copied: as long as they are open here, other workers
            would not notice the end of the parent.
    """
    for other in others:
        other.close()
    # Ctrl-C is for the parent. And the parent's handlers are not for this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    held = HeldRows()
    try:
        while _answer(pipe, held, env_fns):
            pass
    except (EOFError, OSError):  # the parent is gone
        with suppress(Exception):
            held.run("close", ())


def _answer(pipe: Connection[Any, Any], held: HeldRows, env_fns: Sequence[EnvFn] | None) -> bool:
    """Answer one command; False if it was the last one."""
    data = pipe.recv_bytes()
    if data == STEP:
        pipe.send_bytes(held.step())
        return True
    try:
        name, *args = pickle.loads(data)
    except Exception as error:
        pipe.send_bytes(held.refuse(error))
        return True
    if name == "attach":
        _attach(pipe, held, *args)
        pipe.send_bytes(NOTHING)
        return True
    if name == "make" and args[0] is None:
        args[0] = env_fns
    pipe.send_bytes(held.run(name, args))
    return bool(name != "close")


def _attach(
    pipe: Connection[Any, Any],
    held: HeldRows,
    size: int,
    name: str,
    shapes: Shapes,
    num_envs: int,
    first: int,
) -> None:
    memory = receive_memory(pipe, size, name)
    held.attach(buffers_in(memory, shapes, num_envs), first)


def main(number: int) -> None:
    """Serve as a process of its own, the pipe being this file descriptor."""
    serve(Connection(number))
