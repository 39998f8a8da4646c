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


def carried(*arguments: object) -> bytes:
    """Arguments for another process.

    A check from a user's conftest or test travels whole: there is no module of that name there.
    """
    whole = []
    for check in arguments:
        if isinstance(check, Check) and not is_importable(check):
            module = sys.modules.get(check.function.__module__)
            whole += [module] if module is not None and module.__name__ != "__main__" else []
    for module in whole:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(arguments))
    finally:
        for module in whole:
            cloudpickle.unregister_pickle_by_value(module)
