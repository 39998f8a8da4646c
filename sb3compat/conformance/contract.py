"""What a check is: a function with an id, a severity and the contract that it guards."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from sb3compat.conformance.findings import Family, nearest
from sb3compat.conformance.play import Play

Severity = Literal["error", "warning"]
CheckFunction = Callable[[Play], None]

# Where the contracts are written down.
SB3_GUIDE = "https://stable-baselines3.readthedocs.io/en/master/guide/vec_envs.html"
SB3_SOURCE = (
    "https://github.com/DLR-RM/stable-baselines3/blob/master/"
    "stable_baselines3/common/vec_env/base_vec_env.py"
)
GYM_VECTOR = "https://gymnasium.farama.org/api/vector/"
GYM_AUTORESET = "https://farama.org/Vector-Autoreset-Mode"

_MODULES = (
    "vec_env_basics",
    "vec_env_step",
    "vec_env_episodes",
    "vec_env_rows",
    "vec_env_seeding",
    "vec_env_ownership",
    "vec_env_access",
    "vec_env_sb3",
    "vector_env_basics",
    "vector_env_infos",
    "vector_env_seeding",
    "vector_env_episodes",
    "vector_env_next_step",
    "vector_env_same_step",
    "vector_env_disabled",
    "vector_env_masked",
    "vector_env_rows",
    "vector_env_access",
)


@dataclass(frozen=True)
class Check:
    """One thing that an environment has to do.

    Attributes:
        id: Its name, the same in Python, on the command line, in pytest and in the docs.
        family: Which of the two interfaces it is about.
        group: The heading under which it is listed.
        severity: `"error"` breaks a contract, `"warning"` works but is hazardous.
        contract: What is asked for, in one sentence.
        source: Where that is written down.
        needs: Capabilities without which it is skipped.
        after: Checks that have to have passed, as this one could not tell anything otherwise.
        modes: The autoreset modes in which it applies; all where it is empty.
        function: What does the checking.
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
    function: CheckFunction

    @property
    def explanation(self) -> str:
        """The docstring of the function, after its first line."""
        _, _, rest = inspect.cleandoc(self.function.__doc__ or "").partition("\n")
        return rest.strip()


_REGISTRY: dict[tuple[str, str], Check] = {}


def check(
    family: Family,
    group: str,
    severity: Severity,
    source: str,
    *,
    needs: Iterable[str] = (),
    after: Iterable[str] | None = None,
    modes: Iterable[str] = (),
) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check; the first line of its docstring is the contract."""

    def register(function: CheckFunction) -> CheckFunction:
        name = function.__name__
        contract = inspect.cleandoc(function.__doc__ or "").partition("\n")[0]
        basics = BASICS[family] if after is None else tuple(after)
        _REGISTRY[family, name] = Check(
            name, family, group, severity, contract, source,
            tuple(needs), basics, tuple(modes), function,
        )  # fmt: skip
        return function

    return register


# What has to hold before anything else can be looked at.
BASICS: dict[str, tuple[str, ...]] = {
    "vec_env": ("reset_returns_obs_only", "step_returns_four"),
    "vector_env": ("reset_returns_two", "step_returns_five", "flags_shape"),
}


def checks_of(family: Family | None = None, mode: str | None = None) -> list[Check]:
    """All checks, or those for one family and one autoreset mode, in the order of the docs."""
    for module in _MODULES:
        import_module(f"sb3compat.conformance.checks.{module}")
    return [
        check
        for check in _REGISTRY.values()
        if family in (None, check.family) and (mode is None or mode in (check.modes or (mode,)))
    ]


def find_checks(check_id: str) -> list[Check]:
    """The checks with this id, of both families.

    Raises:
        ValueError: If there is none; the message names the nearest.
    """
    known = checks_of()
    found = [check for check in known if check.id == check_id]
    if found:
        return found
    hint = nearest(check_id, [check.id for check in known]) or " `sb3compat list` shows them."
    raise ValueError(f"Expected the id of a check, got {check_id!r}.{hint}")


def find_check(family: str, check_id: str) -> Check:
    """The check of one family with this id."""
    checks_of()
    return _REGISTRY[family, check_id]
