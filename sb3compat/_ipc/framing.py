"""The form of a message in a pipe of `multiprocessing`: its size, and what was pickled."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from sb3compat.errors import WorkerError

# What is read of an answer before its size is known.
_FIRST_BYTES = 65536
# What surely fits into the buffer of a pipe, so that writing it cannot block.
_SURE_BYTES = 4096


class Message:
    """A message as far as it was sent: a worker that is stopped reads only a part of a long one.

    What was written is known whatever an exception interrupts: the rest can be sent later.

    Args:
        body: What was pickled.

    Attributes:
        body: The same.
    """

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._data = memoryview(header(len(body)) + body)
        # How much each write has taken.
        self._counts = [0]

    @property
    def begun(self) -> bool:
        """Whether a part of it was sent, so that the rest has to follow."""
        return any(self._counts)

    @property
    def short(self) -> bool:
        """Whether a worker that owes no answer takes it without a wait."""
        return len(self._data) <= _SURE_BYTES

    def write(self, number: int) -> bool:
        """Write once; whether the whole message was sent."""
        sent = sum(self._counts)
        self._counts = [sent]
        part = self._data[sent : sent + _SURE_BYTES]
        _note(self._counts, partial(os.write, number, part))
        return sum(self._counts) == len(self._data)


class Answer:
    """An answer as far as it has come: its worker may stop, or be killed, in the middle of it.

    `Connection.recv` would wait for the rest, for ever where another worker holds the pipe. What
    was read is kept whatever an exception interrupts: the next one to ask gets it.

    Args:
        body: All of it, if it was read elsewhere.
    """

    def __init__(self, body: bytes | None = None) -> None:
        # What was read, before the size of the message is known.
        self._chunks: list[bytes] = []
        # Then the body, and how much of it each read has brought.
        self._body = None if body is None else memoryview(body)
        self._counts = [len(body or b"")]

    def read(self, number: int) -> None:
        """Read once.

        Raises:
            EOFError: If the other end is closed.
        """
        if self._body is None:
            _note(self._chunks, partial(os.read, number, _FIRST_BYTES))
            come = len(self._chunks[-1])
        else:
            have = sum(self._counts)
            self._counts = [have]
            _note(self._counts, partial(os.readv, number, [self._body[have:]]))
            come = self._counts[-1]
        if not come:
            raise EOFError("the pipe was closed")

    def whole(self) -> memoryview | None:
        """The body of the message, if all of it has come.

        Raises:
            WorkerError: If there is more than one answer.
        """
        if self._body is None:
            chunks = self._chunks
            data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
            body = body_of(data)
            if body is None:
                return None
            size, at = body
            have = len(data) - at
            if have == size:
                return memoryview(data)[at:]
            if have > size:
                raise WorkerError(
                    "Expected one answer from a worker, but there is a second one, to an earlier "
                    "call whose answer was not received. Close this environment and build a new "
                    "one."
                )
            whole = memoryview(bytearray(size))
            whole[:have] = data[at:]
            self._counts = [have]
            self._body = whole
        return self._body if sum(self._counts) == len(self._body) else None


def _note(results: list[Any], call: Callable[[], Any]) -> None:
    """Append what the call returns.

    In C, where no signal handler runs between the call and the note of what it has returned.
    """
    results.extend(islice(iter(call, None), 1))


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
