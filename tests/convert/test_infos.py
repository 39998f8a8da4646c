"""What an info may hold, and who owns it."""

from __future__ import annotations

import threading
from copy import deepcopy

import numpy as np
import pytest

from sb3compat._convert.infos import own_info, same_step_info
from sb3compat.errors import ConversionError
from tests.lockstep import same


def test_own_info_shares_nothing() -> None:
    info = {"list": [1], "array": np.zeros(2), "nested": {"objects": np.array([[1], None], object)}}
    owned = own_info(info)
    before = deepcopy(owned)
    same(owned, info)
    info["list"].append(2)
    info["array"][0] = 5
    info["nested"]["objects"][0].append(2)
    same(owned, before)


def test_own_info_keeps_what_cannot_be_copied() -> None:
    lock, numbers = threading.Lock(), [1]
    owned = own_info({"lock": lock, "numbers": numbers, "nested": {"lock": lock, "n": numbers}})
    for level in (owned, owned["nested"]):
        assert level["lock"] is lock
    numbers.append(2)
    assert owned["numbers"] == owned["nested"]["n"] == [1]


def test_same_step_info_holds_the_ending_and_the_reset() -> None:
    info = {"x": 1}
    assert same_step_info(3, info, {"y": 2}) == {"final_obs": 3, "final_info": {"x": 1}, "y": 2}
    assert same_step_info(None, {}, {}) == {"final_info": {}}
    with pytest.raises(ConversionError, match=r"without the keys \['final_obs'\]"):
        same_step_info(3, {}, {"final_obs": 2})
