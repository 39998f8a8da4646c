"""The registry of all environments that the kit is tried on: `SPECIMENS`.

Importing a module with specimens fills it: `every` those of the matrix, `worlds_in_rows`,
`accused`, `accused_in_rows` and `unseen` the others. The ports of published adapters are targets:
`conformance/targets/`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from gymnasium.vector import AutoresetMode

from conformance.specimens import points, rows_env
from conformance.specimens.points import OPTIONS, Config
from conformance.specimens.rows_env import MODES, Form, RowsEnv
from sb3compat.conformance.findings import Family

Kind = Literal["mutant", "form", "world", "unseen", "accused"]
Make = TypeVar("Make", bound=Callable[[], Any])


@dataclass(frozen=True)
class Specimen:
    """An environment that the kit is tried on.

    Attributes:
        kind: A `"mutant"` is a correct environment with one small change, and a `"form"` is such a
            correct one; a `"world"` is correct and looks odd; an `"unseen"` one was written by
            someone who had not read the checks; an `"accused"` one is correct, and a check took it
            for broken once.
        name: What it is called, once in its kind, interface and mode.
        family: Its interface.
        factory: Makes it.
        module: Where its class stands.
        mode: The value of its autoreset mode, for a `VectorEnv` if it is known.
        broken: Whether it breaks its contract.
        fails: The ids of the checks that it must fail; not known of all unseen ones.
        may_fail: Those of others that it may fail; it passes all others.
        reference: The factories of its correct single environments, if the user gives them.
        options: Options that it should understand.
        declared: Declared capabilities.
        untold: Why nothing tells it from a correct one by default, without a reference or other
            arguments; empty where the kit finds it.
        about: Its docstring, of an unseen one; for a broken one it also says what is wrong.
        rightly: Checks that fail on a correct one all the same, each with the source that it is
            right by.
        wrongly: Checks that once failed on a correct one, and were wrong.
    """

    kind: Kind
    name: str
    family: Family
    factory: Callable[[], Any]
    module: str
    mode: str | None = None
    broken: bool = False
    fails: frozenset[str] = frozenset()
    may_fail: frozenset[str] = frozenset()
    reference: Any = None
    options: dict[str, Any] | None = None
    declared: dict[str, bool] = field(default_factory=dict)
    untold: str = ""
    about: str = ""
    rightly: Mapping[str, str] = field(default_factory=dict)
    wrongly: frozenset[str] = frozenset()

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `examine` that the user gives."""
        return {
            "reference": self.reference,
            "options": self.options,
            "declared": self.declared,
        }

    @property
    def id(self) -> str:
        """What it is called, once in its kind."""
        return f"{self.mode or self.family}-{self.name}"


SPECIMENS: dict[tuple[Kind, str], Specimen] = {}


def enter(specimen: Specimen) -> None:
    """Enter a specimen.

    Raises:
        ValueError: If there is another one of this name.
    """
    if (specimen.kind, specimen.id) in SPECIMENS:
        raise ValueError(f"There are two specimens named {specimen.id}.")
    SPECIMENS[specimen.kind, specimen.id] = specimen


def specimens(kind: Kind, family: Family | None = None, mode: str | None = None) -> list[Specimen]:
    """Those of a kind, or of one interface or mode, as far as their modules are imported."""
    return [
        each
        for each in SPECIMENS.values()
        if each.kind == kind
        and family in (None, each.family)
        and (mode is None or mode == each.mode)
    ]


def vec_env_mutant(
    *fails: str,
    may_fail: Iterable[str] = (),
    config: Config | None = None,
    referenced: bool = True,
    untold: str = "",
    name: str = "",
    options: dict[str, Any] | None = OPTIONS,
) -> Callable[[type], type]:
    """Enter a class as a mutant of a `VecEnv` that fails these checks."""

    def register(cls: type) -> type:
        shape = config or Config()
        enter(
            Specimen(
                "mutant",
                name or cls.__name__,
                "vec_env",
                partial(cls, shape),
                cls.__module__,
                broken=True,
                fails=frozenset(fails),
                may_fail=frozenset(may_fail),
                reference=points.reference(shape) if referenced else None,
                options=options,
                untold=untold,
            )
        )
        return cls

    return register


def vector_env_mutant(
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
    """Enter a class as a mutant of a `VectorEnv` that fails these checks in these modes."""

    def register(cls: type[RowsEnv]) -> type[RowsEnv]:
        for mode in modes:
            shape = Form(**{"mode": mode, **form})

            def make(shape: Form = shape) -> Any:
                env = cls(shape)
                return wrap(env) if wrap else env

            enter(
                Specimen(
                    "mutant",
                    cls.__name__,
                    "vector_env",
                    make,
                    cls.__module__,
                    mode,
                    broken=True,
                    fails=frozenset(fails),
                    may_fail=frozenset(may_fail),
                    reference=rows_env.reference(shape) if referenced else None,
                    options=options,
                    declared=dict(declared or {}),
                    untold=untold,
                )
            )
        return cls

    return register


def unseen(
    family: Family,
    *,
    mode: AutoresetMode | None = None,
    broken: bool = False,
    singles: tuple[Callable[[], Any], ...] = (),
    untold: str = "",
    rightly: Mapping[str, str] | None = None,
) -> Callable[[Make], Make]:
    """Enter an environment of someone who had not read the checks.

    Args:
        family: The contract that it is written for.
        mode: The autoreset mode of a `VectorEnv`.
        broken: Whether it breaks its contract in one way.
        singles: What makes the single environments of its rows, where it has such.
        untold: Why only these can convict it.
        rightly: As in `Specimen`.
    """

    def register(make: Make) -> Make:
        enter(
            Specimen(
                "unseen",
                make.__name__,
                family,
                make,
                make.__module__,
                mode.value if mode else None,
                broken=broken,
                reference=list(singles) or None,
                untold=untold,
                about=inspect.cleandoc(make.__doc__ or ""),
                rightly=rightly or {},
            )
        )
        return make

    return register


def accused(family: Family, *checks: str, mode: str | None = None) -> Callable[[Make], Make]:
    """Enter a correct environment that these checks took for broken once."""

    def register(make: Make) -> Make:
        name, module = make.__name__, make.__module__
        enter(Specimen("accused", name, family, make, module, mode, wrongly=frozenset(checks)))
        return make

    return register
