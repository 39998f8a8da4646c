"""What a check is: a function with an id, a severity and the contract that it guards."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

from sb3compat.conformance.findings import FAMILIES, CheckError, Family
from sb3compat.conformance.judge import Clause, Demand, Variant
from sb3compat.conformance.record import Record
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.capabilities import CAPABILITIES
from sb3compat.conformance.subject.subject import Subject
from sb3compat.errors import nearest, shown

# The version of the contract, that is, of all checks together. It is increased in each release that
# has a new or a stricter check: an environment that passed before may fail then.
CONTRACT_VERSION = 1

Severity = Literal["error", "warning"]
CheckFunction = (
    Callable[[Record], Iterator[Demand]]  # a clause
    | Callable[[Record, Record], Iterator[Demand]]  # a comparison
    | Callable[[Scene], Iterator[Demand]]  # a scenario
)
Function = TypeVar("Function", bound=CheckFunction)

# Where the contracts are written down.
SB3_GUIDE = "https://stable-baselines3.readthedocs.io/en/master/guide/vec_envs.html"
SB3_SOURCE = (
    "https://github.com/DLR-RM/stable-baselines3/blob/master/"
    "stable_baselines3/common/vec_env/base_vec_env.py"
)
GYM_VECTOR = "https://gymnasium.farama.org/api/vector/"
GYM_RESET = "https://gymnasium.farama.org/api/env/#gymnasium.Env.reset"
GYM_AUTORESET = "https://farama.org/Vector-Autoreset-Mode"

MODES = ("NextStep", "SameStep", "Disabled")

# The checks before all others: reset and step return values of the right kinds.
BASICS: dict[Family, tuple[str, ...]] = {
    "vec_env": ("reset_returns_obs_only", "step_returns_four"),
    "vector_env": ("reset_returns_two", "step_returns_five", "flags_shape"),
}


@dataclass(frozen=True)
class Check:
    """One clause of the contract, and the function that checks it.

    Attributes:
        id: Its name, the same in Python, on the command line, in pytest and in the docs.
        family: The interface that it concerns.
        group: The heading under which it is listed.
        severity: `"error"` breaks a contract, `"warning"` works but is risky.
        contract: The clause, in one sentence.
        source: Where the clause is written down.
        needs: Capabilities without which the check is skipped.
        after: Checks whose failure makes this one pointless.
        modes: The autoreset modes in which it applies; empty for all.
        new: Whether it needs instances that no other program has used.
        variant: Makes the second program of a comparison from the calls of the first.
        function: The check itself.
        without_reference: What checks a part of it where single environments are unknown; None if
            it does not need them, or does not run then.
    """

    id: str
    family: Family
    group: str
    severity: Severity
    contract: str
    source: str
    needs: tuple[str, ...]
    after: tuple[str, ...]
    modes: tuple[str, ...]
    new: bool
    variant: Variant | None
    function: Clause
    without_reference: Clause | None = None

    def suited_to(self, subject: Subject) -> Check:
        """The check with the function that judges this environment."""
        if self.without_reference is None or not subject.missing(("reference", "seeding")):
            return self
        return replace(self, function=self.without_reference)

    @property
    def is_clause(self) -> bool:
        """Whether its function judges records, and does not call the environment itself."""
        return _argument(self.function) == "record"

    @property
    def explanation(self) -> str:
        """The docstring of the function, after its first line."""
        _, _, rest = inspect.cleandoc(self.function.__doc__ or "").partition("\n")
        return rest.strip()


def _argument(function: Clause) -> str:
    """The name of its first parameter."""
    return next(iter(inspect.signature(function).parameters), "")


_REGISTRY: dict[tuple[Family, str], Check] = {}


def check(
    family: Family,
    *,
    severity: Severity = "error",
    source: str = "",
    group: str = "",
    needs: Iterable[str] = (),
    after: Iterable[str] | None = None,
    modes: Iterable[str] = (),
    new: bool = False,
    variant: Variant | None = None,
    without_reference: CheckFunction | None = None,
) -> Callable[[Function], Function]:
    """Register a function as a check of the conformance kit; a decorator.

    The name of the function is the id of the check, and the first line of its docstring the clause
    of the contract. The function yields the conditions that must be true, each made by `expect`.
    The name of its first parameter says what it gets:

    - `record`: a `Record`, the calls of a program with what they returned. The kit draws the
      programs, runs each once for all checks, and shrinks one that fails.
    - `scene`: a `Scene`, which makes instances of the environment. The function calls them itself.

    Args:
        family: The interface that it concerns: `"vec_env"` or `"vector_env"`.
        severity: `"error"` if a failure breaks the contract, `"warning"` if it is risky only.
        source: Where the clause is written down.
        group: The heading under which it is listed; the package of the function by default.
        needs: Capabilities without which it is skipped, as `sb3compat list` names them.
        after: The ids of checks whose failure makes this one pointless; by default the checks that
            `reset` and `step` return values of the right kinds.
        modes: The autoreset modes in which it applies; empty for all.
        new: Whether it needs instances that no other program has used. Otherwise programs share
            instances if making one takes long.
        variant: A function that makes a second program from the calls of the first, to compare the
            two: see `variants`. The check gets the records of both.
        without_reference: A second function, which tests a part of the clause where the single
            environments are unknown.

    Returns:
        The decorator, which returns the function as it is.

    Raises:
        CheckError: If the function has no docstring, if there is such a check already, or if an
            argument has a value that does not exist. A `ValueError`.

    Example::

        @check("vec_env", severity="warning")
        def rewards_are_finite(record: Record) -> Iterator[Demand]:
            "No reward is infinite or NaN."
            for step in record.steps:
                yield expect("np.isfinite({0}).all()", step.rewards, should="finite")

        @check("vec_env")
        def second_reset_starts_anew(scene: Scene) -> Iterator[Demand]:
            "A reset in the middle of an episode returns observations of the space again."
            env, _ = scene.start()
            env.step(scene.actions())
            again = env.reset()
            space = env.attribute("observation_space")
            for i in scene.rows:
                yield expect("{1}.contains({0})", again.obs.row(i), space, should="inside", row=i)
    """
    lists = {"needs": needs, "after": after or (), "modes": modes}
    for what, value in (lists | {"source": source, "group": group, "new": new}).items():
        fits = isinstance(value, bool if what == "new" else str)
        if what in lists:  # a string would count as the list of its letters
            fits = isinstance(value, Iterable) and not isinstance(value, str)
        if not fits:
            wanted = "a list of names" if what in lists else "a bool" if what == "new" else "a text"
            raise CheckError(
                f"Expected {what} to be {wanted}, got {what}={shown(value)} "
                f"({type(value).__name__}). Pass such a value, or leave it out."
            )

    def register(function: Function) -> Function:
        name, module = function.__name__, function.__module__
        contract = inspect.cleandoc(function.__doc__ or "").partition("\n")[0]
        basics = BASICS.get(family, ()) if after is None else tuple(after)
        made = Check(
            name, family, group or module.partition(".")[0], severity, contract, source,
            tuple(needs), basics, tuple(modes), new, variant, function,
            without_reference,
        )  # fmt: skip
        _refuse(made)
        _REGISTRY[family, name] = made
        return function

    return register


def _refuse(made: Check) -> None:
    """Refuse a check that could not be told from another, or would never run.

    Raises:
        CheckError: The message says which function it is, and what to do.
    """
    where = f"{made.function.__module__}.{made.id}"
    for what, known, given in (
        ("an interface", FAMILIES, (made.family,)),
        ("a severity", get_args(Severity), (made.severity,)),
        ("a capability", CAPABILITIES, made.needs),
        ("an autoreset mode", MODES, made.modes),
    ):
        for name in given:
            if name not in known:
                choices = ", ".join(map(repr, known))
                hint = nearest(name, known, "Use one of these.")
                raise CheckError(f"Expected {what} ({choices}) for {where}, got {name!r}.{hint}")
    for name in ("variant", "without_reference"):
        value = getattr(made, name)
        if value is not None and not callable(value):
            raise CheckError(
                f"Expected {name} to be a function for {where}, got {value!r}. Pass one, or leave "
                "it out."
            )
    for function in (made.function, made.without_reference):
        if function is not None and (got := _argument(function)) not in ("record", "scene"):
            raise CheckError(
                f"Expected {where} to have a first parameter called record (the check judges "
                f"programs of the kit) or scene (it calls the environment), got {got!r}. Rename it."
            )
    if not made.contract:
        raise CheckError(
            f"Expected {where} to have a docstring, whose first line says what is asked for, got "
            "none. Write one."
        )
    other = _REGISTRY.get((made.family, made.id))
    if other is not None and other.function.__module__ != made.function.__module__:
        raise CheckError(
            f"Expected an id that no other check of {made.family} has, got {where} beside "
            f"{other.function.__module__}.{made.id}. Rename the function."
        )


def registered() -> list[Check]:
    """All checks, in the order of their definition."""
    return list(_REGISTRY.values())
