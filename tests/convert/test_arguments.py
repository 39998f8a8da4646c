"""Arguments that several functions take; `tests/test_wrong_arguments.py` has the usual mistakes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sb3compat._convert.arguments import check_timeout, plain_count


@pytest.mark.parametrize("timeout", [None, 1, 0.1, 1e9, np.float32(2), np.int64(3), Fraction(1, 3)])
def test_timeouts_in_seconds_are_accepted(timeout: Any) -> None:
    check_timeout(timeout)


@pytest.mark.parametrize(
    ("timeout", "kind"),
    [
        (float("inf"), ValueError), (np.float64("nan"), ValueError), (10**400, ValueError),
        (np.True_, TypeError), (1j, TypeError), (Decimal(3), TypeError), (np.array(3.0), TypeError),
    ],
)  # fmt: skip
def test_other_timeouts_are_refused(timeout: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"Expected timeout to be a .*got timeout="):
        check_timeout(timeout)


def test_counts_are_integers_of_one_at_least() -> None:
    assert type(plain_count("workers", np.int64(3))) is int
    with pytest.raises(TypeError, match=r"Expected n_envs to be an int, got n_envs="):
        plain_count("n_envs", 2.0)
    for value in (0, np.int64(0), False):
        with pytest.raises(ValueError, match=r"Expected n_envs to be at least 1, got n_envs="):
            plain_count("n_envs", value)
