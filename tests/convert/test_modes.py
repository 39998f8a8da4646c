"""Autoreset modes by member, value and name."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from sb3compat import AutoresetModeError
from sb3compat._convert.modes import names_mode, parse_mode


@pytest.mark.parametrize("mode", AutoresetMode)
def test_member_value_and_name_mean_the_mode(mode: AutoresetMode) -> None:
    assert parse_mode(mode) is parse_mode(mode.value) is parse_mode(mode.name) is mode


@pytest.mark.parametrize("value", ["next_step", "", None, 1, np.array(["NextStep", "SameStep"])])
def test_anything_else_is_refused_with_the_names(value: object) -> None:
    with pytest.raises(
        AutoresetModeError, match=r"\['NextStep', 'SameStep', 'Disabled'\]"
    ) as error:
        parse_mode(value)
    assert f"autoreset_mode={value!r} ({type(value).__name__})" in str(error.value)


def test_a_name_means_one_mode_only() -> None:
    named = [mode for mode in AutoresetMode if names_mode("SAME_STEP", mode)]
    assert named == [AutoresetMode.SAME_STEP]
