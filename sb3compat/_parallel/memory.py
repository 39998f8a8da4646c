"""The results of fixed size in a step of all rows: arrays in memory that processes can share."""

from __future__ import annotations

import math
import mmap
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from sb3compat._convert.actions import Actions
from sb3compat._convert.observations import Observations
from sb3compat._convert.types import Array, Flags, Rewards

# Arrays begin at cache lines.
_LINE_BYTES = 64


class Buffers(NamedTuple):
    """The arrays of a step, each with one element for each row.

    Attributes:
        observations: One array for each leaf of the observation space.
        finals: The same for last observations, in rows whose worker does not send them separately.
        actions: One array for each leaf of the action space.
        rewards: float32.
        ended: Which rows' episodes ended.
        truncated: Which of them were truncated and not terminated as well.
    """

    observations: list[Array]
    finals: list[Array]
    actions: list[Array]
    rewards: Rewards
    ended: Flags
    truncated: Flags

    @property
    def results(self) -> list[Array]:
        """What a step always returns."""
        return [*self.observations, self.rewards, self.ended, self.truncated]


def size_of(observations: Observations, actions: Actions) -> int:
    """How many bytes the buffers of these batches take."""
    return sum(_stride(*one) for one in _arrays(observations, actions))


def buffers_in(memory: Any, observations: Observations, actions: Actions) -> Buffers:
    """The buffers as views of memory, a block of `size_of(observations, actions)` bytes."""
    arrays, offset = [], 0
    for shape, dtype in _arrays(observations, actions):
        arrays.append(np.ndarray(shape, dtype, memory, offset))
        offset += _stride(shape, dtype)
    leaves = len(observations.leaves)
    return Buffers(
        arrays[:leaves], arrays[leaves : 2 * leaves], arrays[2 * leaves : -3], *arrays[-3:]
    )


def _arrays(
    observations: Observations, actions: Actions
) -> Iterator[tuple[tuple[int, ...], np.dtype[Any]]]:
    """The shape and dtype of each buffer, in order."""
    n = observations.num_envs
    for leaf in (*observations.leaves, *observations.leaves, *actions.leaves):
        yield (n, *leaf.shape), leaf.dtype
    for kind in (np.float32, np.bool_, np.bool_):
        yield (n,), np.dtype(kind)


def _stride(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return -(-math.prod(shape) * dtype.itemsize // _LINE_BYTES) * _LINE_BYTES


class Place(NamedTuple):
    """Where other processes of the same machine find the memory of a `Segment`.

    Attributes:
        path: The path.
        file: The device and the number of the file, by which it is recognised.
    """

    path: str
    file: tuple[int, int]


class Segment:
    """Anonymous memory that processes share: it is freed when the last of them ends.

    So nothing is left in `/dev/shm`, also after `kill -9`. On Linux it is a `memfd`, which the size
    of `/dev/shm` does not limit; elsewhere a temporary file that is unlinked at once. Windows has
    names for it, and frees it with its last user, too.

    Args:
        size: How many bytes.
    """

    def __init__(self, size: int) -> None:
        self._file: FileIO | None = None
        if sys.platform == "win32":
            self.name = f"sb3compat-{os.getpid()}-{os.urandom(16).hex()}"
            self.memory = mmap.mmap(-1, size, tagname=self.name)
        else:
            self.name = ""
            self._file = _unnamed_file()
            self._file.truncate(size)
            self.memory = mmap.mmap(self._file.fileno(), size)

    def send(self, pipe: Connection[Any, Any]) -> None:
        """Hand it to the process at the other end, which calls `receive_memory`."""
        if self._file is not None:
            with socket.socket(fileno=os.dup(pipe.fileno())) as end:
                socket.send_fds(end, [b"f"], [self._file.fileno()])

    @property
    def place(self) -> Place | None:
        """Where other processes of this machine can open it; None if they cannot."""
        if self._file is None:
            return None
        path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
        return Place(path, _identity(self._file)) if os.path.exists(path) else None

    def close(self) -> None:
        """Close the file; the memory stays as long as arrays use it."""
        if self._file is not None:
            self._file.close()


def receive_memory(pipe: Connection[Any, Any], size: int, name: str) -> mmap.mmap:
    """The memory of a `Segment` that the other end is sending."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size, tagname=name)
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:
        _, (file,), _, _ = socket.recv_fds(end, 1, 1)
    try:
        return mmap.mmap(file, size)
    finally:
        os.close(file)  # the mapping has one of its own


def open_memory(place: Place, size: int) -> mmap.mmap | None:
    """The memory of a `Segment` of another process; None if it cannot be reached from here."""
    try:
        with open(place.path, "r+b") as file:
            return mmap.mmap(file.fileno(), size) if _identity(file) == place.file else None
    except (OSError, ValueError):  # a container, for instance
        return None


def _identity(file: Any) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _unnamed_file() -> FileIO:
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # an old system, or a sandbox without it
            return FileIO(os.memfd_create("sb3compat"), "r+")
    return tempfile.TemporaryFile(buffering=0)
