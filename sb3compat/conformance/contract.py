"""What a check is: a function with an id, a severity and the contract that it guards."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from sb3compat.conformance.findings import Family
from sb3compat.conformance.play import Play

# The version of the contract: of all checks together. It is raised in each release that has a new
# check, or a check that asks for more: an environment that was clean may no longer be.
CONTRACT_VERSION = 1

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
        severity: `"error"` breaks a contract, `"warning"` works but is hazardous.
        contract: The clause, in one sentence.
        source: Where the clause is written down.
        needs: Capabilities without which the check is skipped.
        after: Checks whose failure makes this one pointless.
        modes: The autoreset modes in which it applies; empty for all.
        function: The check itself.
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


_REGISTRY: dict[tuple[Family, str], Check] = {}


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


def registered(module: str) -> list[Check]:
    """The checks that a module defines, in the order of their definition."""
    return [check for check in _REGISTRY.values() if check.function.__module__ == module]
