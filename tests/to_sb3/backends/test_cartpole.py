"""Gymnasium's native CartPole: options, wrappers, subclasses. See test_transitions.py as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._to_sb3.backends.cartpole import ResetRows
from tests.envs import Identity
from tests.to_sb3.backends.cartpole import RESET_BOUND, native, within


@pytest.mark.parametrize("wrap", [lambda env: env, Identity], ids=["bare", "wrapped"])
def test_options_move_the_bounds_until_the_next_reset(wrap: Any) -> None:
    """Its autoreset, too, draws from the bounds of the last reset."""
    env: Any = sb3compat.to_sb3(wrap(native(6, 10)))
    env.seed(1)
    env.set_options({"low": 0.01, "high": 0.02})
    assert within(env.reset(), 0.01, 0.02)
    steps = (env.step(np.ones(6, int)) for _ in range(40))
    drawn = np.concatenate([obs[dones] for obs, _, dones, _ in steps])
    assert len(drawn) > 12
    assert within(drawn, 0.01, 0.02)
    obs = env.reset()
    assert within(obs, -RESET_BOUND, RESET_BOUND)
    assert obs.min() < 0


def test_rows_that_have_not_ended_begin_within_the_bounds_of_a_reset() -> None:
    """Those whose episodes a wrapper ends."""
    env = native(6, 10)
    env.reset(seed=1, options={"low": 1.0, "high": 2.0})
    mask = np.arange(6) < 5
    obs, _ = ResetRows()(env, mask)
    assert within(obs[mask], -RESET_BOUND, RESET_BOUND)
    assert obs[mask].min() < 0 < obs[mask].max()
    assert within(obs[~mask], 1.0, 2.0)
