"""How a space is laid out in batches, and which spaces SB3 cannot batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat._convert.observations import Observations
from sb3compat.errors import UnsupportedSpaceError

BOX = spaces.Box(-1, 1, (2,), np.float32)
DICT = spaces.Dict({"a": spaces.Discrete(3), "b": BOX})
TUPLE = spaces.Tuple([spaces.Discrete(3), BOX])
NESTED = spaces.Dict({"ok": BOX, "in": spaces.Dict({"deep": BOX})})


@pytest.mark.parametrize(
    ("space", "part"),
    [
        (NESTED, "observation_space['in']"),
        (spaces.Tuple([BOX, spaces.Tuple([BOX])]), "observation_space[1]"),
        (spaces.Dict({"words": spaces.Text(3)}), "observation_space['words']"),
        (spaces.Text(3), "observation_space"),
        (spaces.Sequence(BOX), "observation_space"),
        (spaces.Graph(BOX, None), "observation_space"),
        (spaces.OneOf([BOX, BOX]), "observation_space"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_spaces_that_sb3_cannot_batch_are_refused(space: Any, part: str) -> None:
    with pytest.raises(UnsupportedSpaceError) as caught:
        Observations(space, 2)
    assert f"Expected {part} to be a Box" in str(caught.value)
    # SB3 raises NotImplementedError for nested spaces; those who catch that catch this.
    assert isinstance(caught.value, NotImplementedError)


def test_spaces_are_presented_from_zero() -> None:
    shown = Observations(spaces.Dict({"a": spaces.Discrete(3, start=-2), "b": BOX}), 2).presented
    assert shown == spaces.Dict({"a": spaces.Discrete(3), "b": BOX})
    unsorted = spaces.Dict([("z", spaces.Discrete(3, start=1)), ("a", BOX)])
    shown = Observations(unsorted, 2).presented
    assert isinstance(shown, spaces.Dict)
    assert list(shown.spaces) == ["z", "a"]
    multi = spaces.MultiDiscrete([2, 3], start=[1, 1], dtype=np.int32)
    assert Observations(multi, 2).presented == spaces.MultiDiscrete([2, 3], dtype=np.int32)
    np.testing.assert_array_equal(multi.start, [1, 1])


@pytest.mark.parametrize("key", ["achieved_goal", "desired_goal", "observation"])
def test_goals_that_do_not_count_from_zero_are_refused(key: str) -> None:
    """SB3 passes them to `compute_reward`, which is not told of a shift."""
    keys = ("observation", "achieved_goal", "desired_goal")
    space = spaces.Dict({each: spaces.Discrete(3, start=5 * (each == key)) for each in keys})
    Observations(space, 2, from_zero=False)
    if key == "observation":
        assert Observations(space, 2).presented[key] == spaces.Discrete(3)
        return
    with pytest.raises(UnsupportedSpaceError, match="compute_reward"):
        Observations(space, 2)
