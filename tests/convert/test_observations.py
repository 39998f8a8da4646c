"""Observations, written, batched and handed out by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat._convert.observations import Observations
from sb3compat.errors import ConversionError
from tests.envs import GYMNASIUM
from tests.lockstep import same

BOX = spaces.Box(-1, 1, (2,), np.float32)
DICT = spaces.Dict({"a": spaces.Discrete(3), "b": BOX})


def test_batch_without_a_key_is_refused() -> None:
    observations = Observations(DICT, 2)
    with pytest.raises(ConversionError, match="the keys"):
        observations.batch({"a": np.zeros(2)}, copy=True)


@pytest.mark.parametrize("form", ["objects", "list", "dense"])
def test_final_observations_are_picked_from_every_form(form: str) -> None:
    observations = Observations(DICT, 2)
    last = {"a": np.int64(2), "b": np.array([0.5, 1], np.float32)}
    values: dict[str, Any] = {
        "objects": np.array([None, last], object),
        "list": [None, last],
        "dense": {"a": np.array([9, 2]), "b": np.array([[9, 9], [0.5, 1]], np.float32)},
    }
    same(observations.picker(values[form], "final_obs")(1), last)
    with pytest.raises(ConversionError, match=r"infos\['final_obs'\] to hold one observation for"):
        Observations(DICT, 3).picker(values[form], "final_obs")


@pytest.mark.parametrize("shape", [(), (1,)])
def test_final_observations_in_a_batch_are_cast_as_observations_are(shape: tuple[int]) -> None:
    observations = Observations(spaces.Box(0, 9, shape, np.uint8), 2)
    # Nothing is asked of row 0, which has not ended.
    finals = np.array([np.nan, 2.0]).reshape(2, *shape)
    pick = observations.picker(finals, "final_obs")
    (batch,) = observations.batch(np.full((2, *shape), 2.0), copy=True)
    same(pick(1), batch[1])
    with pytest.raises(ConversionError, match=r"dtype uint8.*got dtype=float64 from infos\['final"):
        pick(0)


@pytest.mark.skipif(GYMNASIUM < (1, 2), reason="Discrete has a dtype since Gymnasium 1.2")
@pytest.mark.parametrize("start", [0, 200])
def test_number_that_the_dtype_cannot_hold_is_refused(start: int) -> None:
    observations = Observations(spaces.Discrete(3, start=start, dtype=np.uint8), 1)
    for number in (457, -55):
        with pytest.raises(OverflowError):
            observations.write(observations.empty(), 0, number)
