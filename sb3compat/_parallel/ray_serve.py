"""What runs in a Ray actor: arrays come as arguments of its methods, and go as results."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np

from sb3compat._convert.types import Array
from sb3compat._parallel.memory import Buffers, Shapes, buffers_in, open_memory, size_of
from sb3compat._parallel.worker import Worker

# A tuple each, as a class of ours would cost Ray's serializer more. The answer to a command, and
# observations if there are new ones. None stands for what is in memory shared with the parent.
Ran = tuple[bytes, list[Array] | None]
# Of a step also rewards, ended, truncated, and the last observations of the rows that ended.
Stepped = tuple[bytes, list[Array], Array, Array, Array, list[Array]]


class Place(NamedTuple):
    """Where a parent on the same machine has its arrays.

    Attributes:
        path: The path of its `Segment`.
        token: What the segment ends with, so that no other one is taken for it.
    """

    path: str
    token: bytes


class RowsActor:
    """The rows of one worker; `ray.remote` makes an actor of it.

    Methods return views of its arrays: Ray writes them into its object store before it runs the
    next method.
    """

    def __init__(self) -> None:
        self._held = Worker()
        self._buffers: Buffers
        self._rows: slice
        self._shares = False

    def node(self) -> str:
        """The node that this actor runs on."""
        import ray

        node: str = ray.get_runtime_context().get_node_id()
        return node

    def run(self, data: bytes) -> Ran:
        """The answer to a command."""
        try:
            name, *args = pickle.loads(data)
        except BaseException as error:
            return self._held.refuse(error), None
        if name == "attach":
            self._attach(*args)
            return pickle.dumps(self._shares), None
        answer = self._held.run(name, args)
        if name != "reset" or self._shares:
            return answer, None
        return answer, self._own(self._buffers.observations)

    def step(self, actions: list[Array] | None) -> Ran | Stepped:
        """Step all rows; without actions where these are in shared memory."""
        if actions is None:
            return self._held.step(), None
        out = self._buffers
        for array, values in zip(self._own(out.actions), actions, strict=True):
            array[...] = values
        answer = self._held.step()
        rewards, ended, truncated = self._own([out.rewards, out.ended, out.truncated])
        observations, finals = self._own(out.observations), self._own(out.finals)
        rows = np.flatnonzero(ended)
        return answer, observations, rewards, ended, truncated, [each[rows] for each in finals]

    def _attach(self, shapes: Shapes, num_envs: int, rows: slice, place: Place | None) -> None:
        size = size_of(shapes, num_envs)
        memory = None if place is None else _memory_at(place, size)
        self._shares = memory is not None
        if memory is None:
            # For all rows, so that they have their numbers; it takes only what is written to.
            memory = np.zeros(size, np.uint8)
        self._buffers, self._rows = buffers_in(memory, shapes, num_envs), rows
        self._held.attach(self._buffers, rows.start)

    def _own(self, arrays: list[Array]) -> list[Array]:
        return [array[self._rows] for array in arrays]


def _memory_at(place: Place, size: int) -> Any:
    """The memory of the parent; None if it cannot be reached from here."""
    try:
        memory = open_memory(place.path, size + len(place.token))
    except (OSError, ValueError):  # a container, for instance
        return None
    return memory if memory[size:] == place.token else None
