"""Options, and names that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from sb3compat.conformance import (
    check_vec_env,
)
from tests.conformance.tiny import TinyVecEnv


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ("dones_bool",)}, r"`only`, got 'dones_bool'\. Did you mean 'dones_bool_array'"),
        ({"expected_failures": {"qqq": "x"}}, r"in `expected_failures`, got 'qqq'\.$"),
        ({"capabilities": {"rendr": True}}, r"a capability, got 'rendr'\. Did you mean 'render'"),
    ],
)
def test_unknown_names_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_vec_env(TinyVecEnv, **options)
