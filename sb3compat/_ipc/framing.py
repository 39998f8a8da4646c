"""The format of a message in a pipe of `multiprocessing`: its size, and the pickled data.

What was read is recorded in C, by `list.extend`, so that no signal handler can run between a call
and the record of its result: whatever call an exception interrupts, the rest can be read later.
"""

from __future__ import annotations

import os
import struct

from sb3compat.errors import WorkerError

# What is read at once.
_READ_BYTES = 65536


class Answer:
    """An answer, and how much of it was received: its worker may stop while it sends.

    `Connection.recv` would wait for the rest, forever if another worker holds the pipe open.
    """

    __slots__ = ("_chunks", "_start", "_total")

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        # Where the body starts and ends, once that is known.
        self._start = self._total = 0

    def read(self, number: int) -> None:
        """Read once.

        Raises:
            EOFError: If the other end is closed.
        """
        self._chunks.extend(map(os.read, (number,), (_READ_BYTES,)))
        if not self._chunks[-1]:
            raise EOFError("the pipe was closed")

    def fill(self, body: bytes) -> None:
        """Take a complete body that other code has read."""
        self._chunks = [header(len(body)), body]

    def body(self) -> memoryview | None:
        """The body of the message, if it is complete.

        Raises:
            WorkerError: If there is more than one answer.
        """
        chunks = self._chunks
        if not chunks:
            return None
        if not self._total:
            found = body_of(chunks[0] if len(chunks) == 1 else b"".join(chunks))
            if found is None:
                return None
            size, self._start = found
            self._total = self._start + size
        have = len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
        if have < self._total:
            return None
        if have > self._total:
            raise WorkerError(
                "Expected one answer from a worker, but there is a second one, to an earlier call "
                "whose answer was not received. Close this environment and build a new one."
            )
        return memoryview(chunks[0] if len(chunks) == 1 else b"".join(chunks))[self._start :]


def header(size: int) -> bytes:
    """What `multiprocessing` sends before a message of that size."""
    return struct.pack("!i", size) if size <= _INT else struct.pack("!iQ", -1, size)


def body_of(data: bytes) -> tuple[int, int] | None:
    """The size of a message and where its body starts; None if its header has not come."""
    if len(data) < _SHORT:
        return None
    size: int = struct.unpack_from("!i", data)[0]
    if size != -1:
        return size, _SHORT
    return None if len(data) < _LONG else (struct.unpack_from("!Q", data, _SHORT)[0], _LONG)


_INT = 0x7FFFFFFF
_SHORT, _LONG = struct.calcsize("!i"), struct.calcsize("!iQ")
