"""The registration of a mutant, for both interfaces; the mutants of a VecEnv, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from conformance.specimens.points import OPTIONS, Config, reference


@dataclass(frozen=True)
class Mutant:
    """One broken environment.

    Attributes:
        cls: The broken class.
        factory: Makes it.
        fails: The ids of the checks that it must fail.
        may_fail: The ids of checks that it may fail; it passes all others.
        mode: The value of its autoreset mode, for a `VectorEnv`.
        reference: The factories of its correct single environments, if they are given.
        needs_reference: Whether these checks find it with a reference only.
        untold: Why nothing tells it from a correct one by default, without a reference or other
            arguments; empty where the kit finds it.
        options: Options that it should understand.
        declared: Declared capabilities.
    """

    cls: type
    factory: Callable[[], Any]
    fails: frozenset[str]
    may_fail: frozenset[str] = frozenset()
    mode: str | None = None
    reference: Any = None
    needs_reference: bool = False
    untold: str = ""
    options: dict[str, Any] | None = None
    declared: dict[str, bool] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `examine` that the user gives."""
        return {
            "reference": self.reference,
            "options": self.options,
            "declared": self.declared,
        }


MUTANTS: dict[str, Mutant] = {}


def mutant(
    *fails: str,
    may_fail: Iterable[str] = (),
    config: Config | None = None,
    needs_reference: bool = False,
    referenced: bool = True,
    untold: str = "",
    name: str = "",
) -> Callable[[type], type]:
    """Register a class as a mutant of a `VecEnv` that fails these checks."""

    def register(cls: type) -> type:
        shape = config or Config()
        MUTANTS[name or cls.__name__] = Mutant(
            cls,
            partial(cls, shape),
            frozenset(fails),
            frozenset(may_fail),
            reference=reference(shape) if referenced else None,
            needs_reference=needs_reference,
            untold=untold,
            options=OPTIONS,
        )
        return cls

    return register
