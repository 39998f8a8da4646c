"""What the tap below the wrappers notes of a step and of a reset."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat._to_sb3.tap import BaseTap, MaskOptions, SeenReset
from tests.envs import GYMNASIUM, Identity, MakeEnv, fns, script
from tests.lockstep import same

ACTIONS = np.zeros(2, np.int64)


def tapped() -> tuple[BaseTap, SyncVectorEnv[Any, Any]]:
    env = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
    return BaseTap(env), env


def test_a_step_is_seen_once_with_the_keys_of_the_environment() -> None:
    env = SyncVectorEnv([MakeEnv(script(infos="plain"), i) for i in range(2)])
    tap = BaseTap(env)
    env.reset()
    env.action_space.seed(0)
    result, seen = tap.watch_step(lambda: tap.step(env.action_space.sample()))
    assert (seen.steps, seen.resets) == (1, 0)
    assert seen.info_keys.keys() == result[4].keys() != set()
    assert seen.ended is not None
    assert seen.ended[0] is result[2]
    assert seen.ended[1] is result[3]


def test_steps_and_resets_below_are_counted_anew_for_each_step_above() -> None:
    tap, _ = tapped()
    tap.reset()

    def twice() -> Any:
        tap.step(ACTIONS)
        tap.reset()
        return tap.step(ACTIONS)

    for _ in range(2):
        _, seen = tap.watch_step(twice)
        assert (seen.steps, seen.resets) == (2, 1)
    assert tap.watch_step(lambda: None)[1].steps == 0  # type: ignore[arg-type, return-value]


def test_a_reset_tells_the_mask_and_options_that_came_down() -> None:
    tap, _ = tapped()
    mask = np.array([False, True])
    tap.reset()
    _, seen = tap.watch_reset(lambda: tap.reset(options=MaskOptions(reset_mask=mask)))
    assert seen.mask is mask
    assert tap.watch_reset(tap.reset)[1] == SeenReset(None, None)


def test_after_a_reset_that_raised_the_users_own_resets_go_straight_to_the_environment() -> None:
    tap, env = tapped()

    def fails() -> Any:
        raise ValueError("no reset")

    with pytest.raises(ValueError, match="no reset"):
        tap.watch_reset(fails)
    before = env.np_random_seed
    tap.reset(seed=3)
    assert env.np_random_seed != before


def test_two_adapters_over_one_environment_share_the_tap() -> None:
    source = VectorWrapper(SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2))
    first = sb3compat.to_sb3(source)
    tap = source.env
    second = sb3compat.to_sb3(source)
    assert isinstance(tap, BaseTap)
    assert source.env is tap
    for env in (first, second, first):
        env.reset()
        env.step(ACTIONS)


def test_calls_of_the_user_pass_the_tap_unchanged() -> None:
    wrapped, plain = (Identity(SyncVectorEnv(fns(2))) for _ in range(2))
    sb3compat.to_sb3(wrapped)
    mask = np.array([True, False])
    for kwargs in ({"seed": 3}, {"seed": [4, 5], "options": {"x": 2}}, {}):
        same(wrapped.reset(**kwargs), plain.reset(**kwargs))
    for seed in (None, 7):
        masked = {"reset_mask": mask, "x": 1}
        same(
            wrapped.reset(seed=seed, options=dict(masked)),
            plain.reset(seed=seed, options=dict(masked)),
        )
    # Gymnasium's own check; an assertion before 1.4.
    kind = ValueError if GYMNASIUM >= (1, 4) else AssertionError
    with pytest.raises(kind, match="reset_mask"):
        wrapped.reset(options={"reset_mask": np.array([False, False])})


def test_reset_infos_that_rows_share_are_read_row_by_row() -> None:
    """Also under a vector wrapper, where Gymnasium's batching reads them."""
    env = Identity(SyncVectorEnv([MakeEnv(script(shared=True), i) for i in range(3)]))
    adapted = sb3compat.to_sb3(env)
    adapted.reset()
    assert [info["stamps"][0] for info in adapted.reset_infos] == [0, 1, 2]
    assert [info["deeper"]["stamps"][0] for info in adapted.reset_infos] == [0, 1, 2]
