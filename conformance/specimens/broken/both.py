"""Mutants of both interfaces: what they get wrong has the same names in each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.shared_memory import SharedMemory
from typing import Any, ClassVar

from conformance.specimens.points import Points
from conformance.specimens.registry import vec_env_mutant, vector_env_mutant
from conformance.specimens.rows_env import RowsEnv


def mutant(*fails: str) -> Callable[[type], type]:
    """Enter a mistake as a mutant of each interface that fails these checks."""

    def register(mistake: type) -> type:
        module = {"__module__": mistake.__module__}
        vec_env_mutant(*fails)(type(mistake.__name__, (mistake, Points), module))
        vector_env_mutant(*fails)(type(mistake.__name__, (mistake, RowsEnv), module))
        return mistake

    return register


class Mistake:
    """What `super` is to the type checker in the mistakes: anything."""

    close: Callable[..., None]
    step: Callable[..., Any]
    reset: Callable[..., Any]


# Access


@mutant("access_works_or_is_refused")
class AttributesByAnUnknownName:
    def set_attr(self, name: str, values: Any, indices: Any = None) -> None:
        known: dict[str, Any] = {}
        known[name].append(values)


# Ownership


@mutant("writing_outputs_does_not_change_env")
class RewardsReadBack(Mistake):
    """Looks at the rewards that it returned last, in the array that it returned."""

    place = 1
    given: Any = None
    copy: Any = None

    def reset(self, **kwargs: Any) -> Any:
        self.given = None
        return super().reset(**kwargs)

    def step(self, actions: Any) -> Any:
        results = [*super().step(actions)]
        if self.given is not None and (self.given != self.copy).any():
            results[1] = results[1] * 2 + 1
        self.given, self.copy = results[self.place], results[self.place].copy()
        return tuple(results)


@mutant("writing_outputs_does_not_change_env")
class FlagsReadBack(RewardsReadBack):
    """As a simulator that resets the rows whose flags are set in the array that it returned."""

    place = 2


# The end of an environment


@mutant("close_idempotent")
class ClosesOnce(Mistake):
    closed: bool

    def close(self, **kwargs: Any) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        super().close(**kwargs)


@mutant("close_returns")
class ClosesInTheMainThreadOnly(Mistake):
    """As some simulators with a window do."""

    def close(self, **kwargs: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            threading.Event().wait()
        super().close(**kwargs)


@mutant("close_returns")
class ClosesAllInstances(Mistake):
    pool: ClassVar[set[int]] = set()

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pool.add(id(self))

    def step(self, actions: Any) -> Any:
        if id(self) not in self.pool:
            raise RuntimeError("the pool was shut down")
        return super().step(actions)

    def close(self, **kwargs: Any) -> None:
        self.pool.clear()
        super().close(**kwargs)


@mutant("close_returns")
class EmptiesWhatAllInstancesUse(Mistake):
    """Frees a table of the class."""

    table: ClassVar[dict[str, float]] = {}

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.table["scale"] = 1.0

    def step(self, actions: Any) -> Any:
        obs, *rest = super().step(actions)
        return (obs if self.table else obs * 0), *rest

    def close(self, **kwargs: Any) -> None:
        self.table.clear()
        super().close(**kwargs)


@mutant("nothing_left_after_close")
class ThreadLeft:
    """Has a thread that waits for work for ever."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        threading.Thread(target=threading.Event().wait, daemon=True).start()


@mutant("nothing_left_after_close")
class SharedMemoryLeft(Mistake):
    """Has shared memory that its `close` lets go of, and does not remove."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.memory = SharedMemory(create=True, size=64)

    def close(self, **kwargs: Any) -> None:
        super().close(**kwargs)
        self.memory.close()
