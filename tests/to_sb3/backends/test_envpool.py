"""EnvPool's Gymnasium environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import at_random, check_cartpole, run
from tests.to_sb3.backends.libraries import pool

# EnvPool imports JAX as well.
pytestmark = pytest.mark.jax


@pytest.mark.parametrize("limit", [15, 500])
def test_envpool_transitions_are_true(limit: int) -> None:
    env = sb3compat.to_sb3(pool(4, limit))
    # At both ends at once, EnvPool itself says that the episode was truncated, and no more.
    endings = check_cartpole(env, at_random(4), 300, limit, limit_wins=True)
    assert {ending.truncated for ending in endings} == ({True, False} if limit == 15 else {False})
    assert {ending.row for ending in endings} == set(range(4))


def test_envpool_loses_no_step() -> None:
    """EnvPool counts the steps of each episode, its own autoreset step included."""
    env = sb3compat.to_sb3(pool(4, 15))
    env.reset()
    policy, lengths, endings = at_random(4), np.zeros(4, int), 0
    for _ in range(200):
        _, _, dones, infos = env.step(policy(np.zeros(4)))
        lengths += 1
        for i in range(4):
            assert infos[i]["elapsed_step"] == lengths[i]
            assert infos[i]["env_id"] == infos[i]["players"]["env_id"] == i
            assert env.reset_infos[i]["elapsed_step"] == 0
            assert env.reset_infos[i]["env_id"] == env.reset_infos[i]["players"]["env_id"] == i
        endings += int(dones.sum())
        lengths[dones] = 0
    assert endings > 40


def test_envpool_equals_the_environment_up_to_the_first_ending() -> None:
    raw, ours = pool(3, seed=8), sb3compat.to_sb3(pool(3, seed=8))
    expected, _ = raw.reset()
    same(ours.reset(), expected.copy(), "the first observations")
    policy = at_random(3)
    for _ in range(500):
        actions = policy(expected)
        expected, rewards, terminated, truncated, _ = raw.step(actions)
        obs, our_rewards, dones, infos = ours.step(actions)
        same(our_rewards, rewards, "rewards")
        same(dones, terminated | truncated, "dones")
        if dones.any():
            break
        same(obs, expected, "observations")
    assert dones.any()
    for i in range(3):
        same(infos[i]["terminal_observation"] if dones[i] else obs[i], expected[i], f"row {i}")


def test_envpool_results_do_not_change_later() -> None:
    expected = run(sb3compat.to_sb3(pool(3, 15)), 60)
    same(run(sb3compat.to_sb3(pool(3, 15)), 60, scribble=True), expected, "the stream")
    other = run(sb3compat.to_sb3(pool(3, 15, seed=2)), 60)
    assert not np.array_equal(other[-1][0][0], expected[-1][0][0])


def test_envpool_works_under_a_wrapper_after_earlier_use() -> None:
    source = pool(3, 10)
    source.reset()
    for _ in range(10):
        source.step(np.zeros(3, int))
    env = sb3compat.to_sb3(RecordEpisodeStatistics(source))
    check_cartpole(env, at_random(3), 45, 10, limit_wins=True)
    env.reset()
    for _ in range(10):
        _, _, dones, infos = env.step(np.arange(3) % 2)
        for done, info in zip(dones, infos, strict=True):
            assert ("episode" in info) == done
            if done:
                assert info["episode"]["l"] == info["elapsed_step"]


def test_envpool_works_under_vec_monitor() -> None:
    """SB3 asks for the id of the environment's spec; EnvPool's own kind of spec has none."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    env = sb3compat.to_sb3(pool(3, 10))
    assert env.spec is None
    monitored = vec_env.VecMonitor(env)
    monitored.reset()
    for _ in range(25):
        _, _, dones, infos = monitored.step(np.arange(3) % 2)
        assert [info["episode"]["l"] for info in infos if "episode" in info] == [
            info["elapsed_step"] for done, info in zip(dones, infos, strict=True) if done
        ]
    assert monitored.episode_count >= 6


def test_envpool_warns_that_it_cannot_be_seeded() -> None:
    env = sb3compat.to_sb3(pool(2))
    env.seed(3)
    with pytest.warns(UserWarning, match="seed"):
        env.reset()


@pytest.mark.parametrize(
    "options", [{"low": 0.0}, [{"low": 0.0}, {}]], ids=["of all rows", "by row"]
)
def test_envpool_refuses_options(options: Any) -> None:
    env = sb3compat.to_sb3(pool(2))
    env.reset()

    def reset_with_options() -> None:
        env.set_options(options)
        env.reset()

    with pytest.raises(ValueError, match="options"):
        reset_with_options()


def test_envpool_in_smaller_batches_is_refused() -> None:
    with pytest.raises(sb3compat.ConversionError, match=r"num_envs|batch_size"):
        sb3compat.to_sb3(pool(4, batch_size=2)).reset()
