"""The form of a message in a pipe of `multiprocessing`: its size, and what was pickled."""

from __future__ import annotations

import os
import struct

from sb3compat.errors import WorkerError

# What is read of an answer before its size is known.
_FIRST_BYTES = 65536


class Answer:
    """An answer as far as it has come: its worker may stop, or be killed, in the middle of it.

    `Connection.recv` would wait for the rest, for ever where another worker holds the pipe.
    """

    def __init__(self) -> None:
        self._start = b""
        self._body: memoryview | None = None
        self._have = 0

    def read(self, number: int) -> memoryview | None:
        """Read once; the body of the message, if that was the rest of it.

        Raises:
            EOFError: If the other end is closed.
            WorkerError: If there is more than one answer.
        """
        if self._body is None:
            chunk = os.read(number, _FIRST_BYTES)
            data = self._start + chunk if self._start else chunk
            body = body_of(data)
            if body is None:
                self._start = data
            else:
                size, at = body
                if len(data) - at == size:
                    return memoryview(data)[at:]
                if len(data) - at > size:
                    raise WorkerError(
                        "Expected one answer from a worker, but another is there, to a call whose "
                        "answer was not received. Close this environment and build a new one."
                    )
                self._have = len(data) - at
                self._body = memoryview(bytearray(size))
                self._body[: self._have] = data[at:]
            come = len(chunk)
        else:
            come = os.readv(number, [self._body[self._have :]])
            self._have += come
        if not come:
            raise EOFError("the pipe was closed")
        return self._body if self._body is not None and self._have == len(self._body) else None


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
