"""What an info may hold, and who owns it."""

from __future__ import annotations

import threading

import pytest

from sb3compat._convert.infos import own_info, same_step_info
from sb3compat.errors import ConversionError


def test_own_info_keeps_what_cannot_be_copied() -> None:
    lock, numbers = threading.Lock(), [1]
    owned = own_info({"lock": lock, "numbers": numbers, "nested": {"lock": lock, "n": numbers}})
    for level in (owned, owned["nested"]):
        assert level["lock"] is lock
    numbers.append(2)
    assert owned["numbers"] == owned["nested"]["n"] == [1]


def test_reset_info_with_a_key_of_an_ending_is_refused() -> None:
    with pytest.raises(ConversionError, match=r"without the keys \['final_obs'\]"):
        same_step_info(3, {}, {"final_obs": 2})
