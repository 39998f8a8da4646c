"""How a mutant of a VectorEnv is written down: `MUTANTS`, by name and mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gymnasium.vector import VectorEnv

from conformance.mutants.rows_env import MODES, Form, RowsEnv, reference

Maker = Callable[[], VectorEnv[Any, Any, Any]]


@dataclass(frozen=True)
class Mutant:
    """One broken environment.

    Attributes:
        factory: Makes it.
        fails: The ids of the checks that it must fail.
        may_fail: Ids of others that it may fail; it passes all the rest.
        mode: The value of its autoreset mode.
        reference: Its single environments as they should be, where they are to be given.
        options: Options that it should understand.
        declared: Capabilities that are declared.
    """

    factory: Maker
    fails: frozenset[str]
    mode: str
    reference: Any = None
    options: dict[str, Any] | None = None
    declared: dict[str, bool] = field(default_factory=dict)
    may_fail: frozenset[str] = frozenset()

    @property
    def given(self) -> dict[str, Any]:
        """What the user tells the kit."""
        return {
            "reference": self.reference,
            "options": self.options,
            "declared": self.declared,
        }


MUTANTS: dict[str, Mutant] = {}


def mutant(
    *fails: str,
    may_fail: Iterable[str] = (),
    modes: Iterable[str] = MODES,
    referenced: bool = False,
    options: dict[str, Any] | None = None,
    declared: dict[str, bool] | None = None,
    wrap: Callable[[Any], Any] | None = None,
    **form: Any,
) -> Callable[[type[RowsEnv]], type[RowsEnv]]:
    """Register a class as a mutant that fails these checks in these modes."""

    def register(cls: type[RowsEnv]) -> type[RowsEnv]:
        for mode in modes:
            shape = Form(**{"mode": mode, **form})

            def make(shape: Form = shape) -> Any:
                env = cls(shape)
                return wrap(env) if wrap else env

            MUTANTS[f"{cls.__name__}-{mode}"] = Mutant(
                make,
                frozenset(fails),
                mode,
                reference(shape) if referenced else None,
                options,
                dict(declared or {}),
                frozenset(may_fail),
            )
        return cls

    return register
