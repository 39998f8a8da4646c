"""Instances that one program hands on to the next, where making a new one takes long.

A program hands its instances on unless it closed one, or a call failed: what else it may have left
behind, a seed and a reset undo. A failure that a used instance shows counts only if a new one
shows it, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from weakref import finalize

from sb3compat.conformance.findings import NotExercisedError, said_by
from sb3compat.conformance.program.types import Factory, Reference

_TWO = "the check needs a second instance beside the first, which cannot be made"

# A check needs no more at once.
_MOST = 3
# So often is a factory called that is known to fail on some calls.
_TRIES = 5


_calls: Counter[int] = Counter()
_ahead: list[tuple[Factory, Any]] = []


def make_ahead(factory: Factory, instances: Iterable[Any]) -> None:
    """Have the next calls of a factory return instances that were made before."""
    _ahead[:] = [(factory, env) for env in instances]


def counted(factory: Factory) -> Any:
    """Call a factory; `Instances.calls` knows how often that was."""
    if id(factory) not in _calls:
        with suppress(TypeError):  # another one may get its number once it is gone
            finalize(factory, _calls.pop, id(factory), None)
    _calls[id(factory)] += 1
    if _ahead and _ahead[0][0] is factory:
        return _ahead.pop(0)[1]
    return factory()


class Instances:
    """What the programs of one process share: the factory, and instances that stay open.

    Args:
        factory: Makes an instance.
        reference: The factories of the single environments.
        shared: Whether a program hands its instances on.
        alone: Whether only one instance can exist at a time.
        closing: Whether instances are closed; not if `close` is known to hang.

    Attributes:
        reference: The factories of the single environments; they give out used ones, too.
        shared: Whether a program hands its instances on.
        failure: The exception that the factory raised last, though another call went well.
        failed_in: The number of that call in this process.
        excused: Whether that was told: from then on the factory gets more than one try.
        records: The `Records` of programs, kept as long as this object.
    """

    def __init__(
        self,
        factory: Factory,
        reference: Reference | None = None,
        *,
        shared: bool = False,
        alone: bool = False,
        closing: bool = True,
    ) -> None:
        self.failure: Exception | None = None
        self.failed_in = 0
        self.excused = False
        self.records: Any = None
        self.shared = shared
        self._factory = factory
        self._alone, self._closing = alone, closing
        self._free: list[Any] = []
        # The single environments in use, each with the list of those of its row that are free.
        self._singles: list[tuple[list[Any], Any]] = []
        self.reference = reference
        if shared and reference is not None:
            self.reference = [partial(self._single, [], make) for make in reference]

    def _single(self, free: list[Any], make: Factory) -> Any:
        single = free.pop() if free else make()
        self._singles.append((free, single))
        return single

    def take(self, in_use: int, *, new: bool = False) -> tuple[Any, bool]:
        """An instance for a program, and whether others have used it.

        Args:
            in_use: How many instances the program has.
            new: Whether it must be new.

        Raises:
            NotExercisedError: If the program has one, and there cannot be two.
        """
        if in_use and self._alone:
            raise NotExercisedError(f"{_TWO}, as declared")
        if self._free and not new:
            return self._free.pop(0), True
        if self._alone:
            self.close()
        return self._make(in_use), False

    @contextmanager
    def lent(self, *, new: bool = False) -> Iterator[tuple[Any, bool]]:
        """An instance for a while, as `take`; others may use it unless there is an exception."""
        env, used = self.take(0, new=new)
        keep = False
        try:
            yield env, used
            keep = self.shared
        finally:
            for each in self.give_back([env], keep=keep):
                self.end(each)

    def _make(self, in_use: int) -> Any:
        in_the_way = bool(self._free)
        try:
            return self._call()
        except Exception as error:
            self.failed_in = self.calls
            self.close()
            try:
                env = self._call(_TRIES if self.excused else 1)
            except Exception:
                if in_use:  # the factory works, so the first instance is in the way
                    raise NotExercisedError(f"{_TWO}: {said_by(error)}") from error
                self.failure = error
                raise error from None
            if in_the_way or self.excused:
                return env
            self.end(env)
            self.failure = error
            raise

    @property
    def calls(self) -> int:
        """How often the factory was called in this process."""
        return _calls[id(self._factory)]

    def _call(self, tries: int = 1) -> Any:
        for _ in range(tries - 1):
            with suppress(Exception):
                return counted(self._factory)
        return counted(self._factory)

    def give_back(self, instances: Sequence[Any], *, keep: bool) -> Sequence[Any]:
        """End a program; returns those of its instances that are to be closed.

        Args:
            instances: Its instances.
            keep: Whether others may use them, and its single environments.
        """
        singles, self._singles = self._singles, []
        if not keep:
            return instances
        for of_row, single in singles:
            of_row.append(single)
        free = [*self._free, *instances]
        self._free = free[:_MOST]
        return free[_MOST:]

    def end(self, env: Any) -> None:
        """Close an instance."""
        if self._closing:
            with suppress(Exception, SystemExit):  # checks of `close` call it themselves
                env.close()

    def close(self) -> None:
        """Close the instances that belong to no program."""
        while self._free:
            self.end(self._free.pop())
