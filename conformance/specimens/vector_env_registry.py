"""The registration of a mutant of a VectorEnv: `MUTANTS`, by name and mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from conformance.specimens.registry import Mutant
from conformance.specimens.rows_env import MODES, Form, RowsEnv, reference

MUTANTS: dict[str, Mutant] = {}


def mutant(
    *fails: str,
    may_fail: Iterable[str] = (),
    modes: Iterable[str] = MODES,
    referenced: bool = False,
    untold: str = "",
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
                cls,
                make,
                frozenset(fails),
                frozenset(may_fail),
                mode,
                reference(shape) if referenced else None,
                untold=untold,
                options=options,
                declared=dict(declared or {}),
            )
        return cls

    return register
