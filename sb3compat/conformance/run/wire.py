"""Messages between the parent and the process that runs the checks: a length, then the bytes."""

from __future__ import annotations

import struct
from typing import IO

_LENGTH = struct.Struct("!Q")


def send(stream: IO[bytes], message: bytes) -> None:
    """Write a message at once."""
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Wait for a message; None at the end of the stream."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    return stream.read(_LENGTH.unpack(header)[0])
