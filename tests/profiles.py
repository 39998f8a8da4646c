"""How much the tests try: a part of it while working and for each change, all of it nightly.

The environment variable `SB3COMPAT_PROFILE` names the profile: `dev` (the default) or `nightly`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

VARIABLE = "SB3COMPAT_PROFILE"
# The share of a test's examples that each profile runs. A night has room for a sixth of them.
SHARES = {"dev": 0.1, "nightly": 0.16}
FEWEST = 10


def profile() -> str:
    """The profile of this run.

    Raises:
        ValueError: If the variable names another one.
    """
    name = os.environ.get(VARIABLE) or "dev"
    if name not in SHARES:
        expected = ", ".join(SHARES)
        raise ValueError(f"Expected one of {expected}, got {VARIABLE}={name!r}.")
    return name


def nightly() -> bool:
    """Whether this run leaves nothing out."""
    return profile() == "nightly"


def examples(number: int) -> int:
    """How many examples a Hypothesis test runs.

    Args:
        number: The number to take the share of: at least `FEWEST` or all of them are run.
    """
    return _share(profile(), number)


def some(values: Sequence[T], few: int = 1) -> list[T]:
    """The first few of the values, for tests that are slow with each; nightly all of them."""
    return list(values if nightly() else values[:few])


def spread(values: Sequence[T], few: int) -> list[T]:
    """A few of the values, the first and the last among them; nightly all of them.

    A single one is the first.
    """
    last = len(values) - 1
    if nightly() or last < few:
        return list(values)
    return [values[round(turn * last / max(few - 1, 1))] for turn in range(few)]


def load() -> None:
    """Register the profiles with Hypothesis and load that of this run."""
    # Here, as `make pairs` runs where nothing is installed.
    from hypothesis import HealthCheck, settings

    # A busy machine must not fail a test: no deadlines, and no complaint about slow drawing.
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    for name in SHARES:
        # Elsewhere, a failure is replayed from the log and not from the database of examples.
        settings.register_profile(name, patient, max_examples=_share(name, 500), print_blob=True)
    settings.load_profile(profile())


def _share(name: str, number: int) -> int:
    return max(round(SHARES[name] * number), min(FEWEST, number))
