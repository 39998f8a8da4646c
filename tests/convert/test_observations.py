"""Observations, written, batched and handed out by row."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat._convert.observations import Observations
from sb3compat.errors import ConversionError
from tests.lockstep import same

BOX = spaces.Box(-1, 1, (2,), np.float32)


DICT = spaces.Dict({"a": spaces.Discrete(3), "b": BOX})


def test_observation_of_another_shape_is_refused() -> None:
    observations = Observations(BOX, 2)
    batch = observations.empty()
    with pytest.raises(ConversionError, match=r"shape \(2,\).*row 1 gave shape=\(1,\)"):
        observations.write(batch, 1, np.zeros(1))  # assignment alone would broadcast it


def test_batch_without_a_key_is_refused() -> None:
    observations = Observations(DICT, 2)
    with pytest.raises(ConversionError, match="the keys"):
        observations.batch({"a": np.zeros(2)}, copy=True)


def test_single_observations_share_nothing() -> None:
    observations = Observations(DICT, 3)
    batch = [np.arange(3), np.arange(6, dtype=np.float32).reshape(3, 2)]
    first, second = observations.rows(batch, np.array([0, 2]))
    first["b"][...] = -1  # its own to write to, and whole arrays only
    same(second, {"a": np.int64(2), "b": np.array([4, 5], np.float32)})
    same(batch, [np.arange(3), np.arange(6, dtype=np.float32).reshape(3, 2)])
