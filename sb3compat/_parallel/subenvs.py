"""Reach the sub-environments in workers; only the workers of the rows that are named are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sb3compat._convert.types import ClassInfo, Kwargs, Value
from sb3compat._ipc import by_value
from sb3compat._ipc.worker_questions import class_name, classes_of

if TYPE_CHECKING:
    from sb3compat._parallel.source import ParallelRows


class WorkerSubEnvs:
    """The sub-environments of all workers.

    Args:
        source: Speaks to the workers.
    """

    def __init__(self, source: ParallelRows) -> None:
        self._source = source

    def has(self, name: str, rows: list[int]) -> list[bool]:
        """Whether each row has the attribute, on any wrapper. Its value is not sent."""
        return self._reach("has", (name,), rows)

    def get(self, name: str, rows: list[int]) -> list[Value]:
        """The attribute of each row, from the outermost wrapper that has it."""
        return self._reach("get", (name,), rows)

    def set(self, name: str, value: Value, rows: list[int]) -> None:
        """Set the attribute on the outermost wrapper of each row, as SB3 does."""
        self._reach("set", (name, value), rows)

    def call(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """Call the method of each row, in parallel."""
        return self._reach("call", (name, args, kwargs), rows)

    def read(
        self, name: str, args: tuple[Value, ...], kwargs: Kwargs, rows: list[int]
    ) -> list[Value]:
        """The attribute of each row, in parallel; called if it is a method."""
        return self._reach("read", (name, args, kwargs), rows)

    def is_wrapped(self, wrapper_class: ClassInfo, rows: list[int]) -> list[bool]:
        """Whether each row is wrapped in that class.

        The class goes by its name: unpickling it would import its module, which for SB3's `Monitor`
        means torch in every worker.
        """
        data = by_value.dumps(wrapper_class)
        names = list(map(class_name, classes_of(wrapper_class)))
        return self._reach("is_wrapped", (names, data), rows)

    def _reach(self, method: str, args: tuple[Any, ...], rows: list[int]) -> list[Any]:
        places: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            places.setdefault(self._source.worker_of(row), []).append(place)
        answers = self._source.command(
            {
                worker: ("reach", method, args, [rows[place] for place in own])
                for worker, own in places.items()
            }
        )
        results: list[Any] = [None] * len(rows)
        for worker, own in places.items():
            for place, result in zip(own, answers[worker], strict=False):
                results[place] = result
        return results
