"""Gymnasium's native CartPole: options, wrappers, subclasses. See test_transitions.py as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import Identity
from tests.to_sb3.backends.cartpole import RESET_BOUND, at_random, check_cartpole, native, within


@pytest.mark.parametrize("wrap", [lambda env: env, Identity], ids=["bare", "wrapped"])
def test_options_move_the_bounds_until_the_next_reset(wrap: Any) -> None:
    """As without the adapter: its autoreset draws from the bounds of the last reset."""
    env: Any = sb3compat.to_sb3(wrap(native(6, 10)))
    env.seed(1)
    raw = native(6, 10)
    env.set_options({"low": 0.01, "high": 0.02})
    assert within(env.reset(), 0.01, 0.02)
    raw.reset(seed=1, options={"low": 0.01, "high": 0.02})
    first = [obs[dones] for obs, _, dones, _ in (env.step(np.ones(6, int)) for _ in range(40))]
    theirs, pending = [], np.zeros(6, bool)
    for _ in range(40):
        obs, _, terminated, truncated, _ = raw.step(np.ones(6, int))
        theirs.append(obs[pending])
        pending = terminated | truncated
    for drawn in map(np.concatenate, (first, theirs)):
        assert len(drawn) > 12
        assert within(drawn, 0.01, 0.02)
    obs = env.reset()
    assert within(obs, -RESET_BOUND, RESET_BOUND)
    assert obs.min() < 0


def test_cartpole_subclass_with_a_step_of_its_own_is_not_bypassed() -> None:
    from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

    class Shaped(CartPoleVectorEnv):
        def step(self, action: Any) -> Any:
            obs, rewards, *rest = super().step(action)
            return obs, 2 * rewards, *rest

    class Renamed(CartPoleVectorEnv):
        sutton = True

    for wrap in (lambda env: env, Identity):
        derived = wrap(Renamed(num_envs=3, max_episode_steps=18))
        check_cartpole(sb3compat.to_sb3(derived), at_random(3), 90, 18)
    source = Shaped(num_envs=3, max_episode_steps=9)
    with pytest.raises(
        sb3compat.PartialResetError, match=r"CartPoleVectorEnv cannot be used.*'step'"
    ):
        sb3compat.to_sb3(source)
    known = partial_reset_of(CartPoleVectorEnv(num_envs=3))
    assert known is not None
    sb3compat.register_partial_reset(Shaped, known)
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(30):
        np.testing.assert_array_equal(env.step(np.ones(3, int))[1], [2, 2, 2])
