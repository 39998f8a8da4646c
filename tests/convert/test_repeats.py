"""Last observations that look overwritten by the following reset."""

from __future__ import annotations

import warnings

import numpy as np
from gymnasium import spaces

from sb3compat._convert.observations import Observations
from sb3compat._convert.repeats import RepeatWatch


def test_integers_that_repeat_by_chance_do_not_warn() -> None:
    observations = Observations(spaces.Box(0, 9, (2,), np.int8), 1)
    watch = RepeatWatch()
    batch = [np.array([[1, 2]], np.int8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch.note(0, observations, np.array([1, 3], np.int8), batch)
        for _ in range(20):
            watch.note(0, observations, np.array([1, 2], np.int8), batch)
