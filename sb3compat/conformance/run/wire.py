"""Messages between the parent and the process that runs the checks: a length, then the bytes."""

from __future__ import annotations

import struct
import sys
from typing import IO

import cloudpickle

from sb3compat.conformance.checks.catalogue import is_importable
from sb3compat.conformance.contract import Check

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


def carried(check: Check, *arguments: object) -> bytes:
    """A check and what comes with it, for another process.

    A check from a user's conftest or test travels whole: there is no module of that name there.
    """
    module = sys.modules.get(check.function.__module__)
    if module is None or module.__name__ == "__main__" or is_importable(check):
        return bytes(cloudpickle.dumps((check, *arguments)))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps((check, *arguments)))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
