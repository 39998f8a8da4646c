"""Autoreset modes by member, value and name."""

from __future__ import annotations

import numpy as np
import pytest

from sb3compat import AutoresetModeError
from sb3compat._convert.modes import parse_mode


@pytest.mark.parametrize("value", ["next_step", "", None, 1, np.array(["NextStep", "SameStep"])])
def test_anything_else_is_refused_with_the_names(value: object) -> None:
    with pytest.raises(
        AutoresetModeError, match=r"\['NextStep', 'SameStep', 'Disabled'\]"
    ) as error:
        parse_mode(value)
    assert f"autoreset_mode={value!r} ({type(value).__name__})" in str(error.value)
