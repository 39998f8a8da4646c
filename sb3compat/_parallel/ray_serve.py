"""What runs in a Ray actor: arrays come as arguments of its methods, and go as results."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3compat._convert.types import Array
from sb3compat._parallel.memory import Buffers, Place, Shapes, buffers_in, open_memory, size_of
from sb3compat._parallel.worker import Worker

# A tuple each, as a class of ours would cost Ray's serializer more. The answer to a command, and
# observations if there are new ones. None stands for what is in memory shared with the parent.
Ran = tuple[bytes, list[Array] | None]
# Of a step also rewards, ended and truncated.
Stepped = tuple[bytes, list[Array], Array, Array, Array]


class RowsActor:
    """The rows of one worker; `ray.remote` makes an actor of it.

    Methods return views of its arrays: Ray writes them into its object store before it runs the
    next method.
    """

    def __init__(self) -> None:
        self._worker = Worker(self._attach)
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
        name, answer = self._worker.run(data)
        if name != "reset" or self._shares:
            return answer, None
        return answer, self._own(self._buffers.observations)

    def step(self, actions: list[Array] | None) -> Ran | Stepped:
        """Step all rows; without actions where these are in shared memory."""
        if actions is None:
            return self._worker.step(), None
        out = self._buffers
        for array, values in zip(self._own(out.actions), actions, strict=True):
            array[...] = values
        answer = self._worker.step()
        rewards, ended, truncated = self._own([out.rewards, out.ended, out.truncated])
        return answer, self._own(out.observations), rewards, ended, truncated

    def _attach(self, shapes: Shapes, num_envs: int, rows: slice, place: Place | None) -> bool:
        size = size_of(shapes, num_envs)
        memory: Any = None if place is None else open_memory(place, size)
        self._shares = memory is not None
        if memory is None:
            # For all rows, so that they have their numbers; it takes only what is written to.
            memory = np.zeros(size, np.uint8)
        self._buffers, self._rows = buffers_in(memory, shapes, num_envs), rows
        self._worker.attach(self._buffers, rows.start)
        return self._shares

    def _own(self, arrays: list[Array]) -> list[Array]:
        return [array[self._rows] for array in arrays]
