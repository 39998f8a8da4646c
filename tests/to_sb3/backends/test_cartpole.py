"""Gymnasium's native CartPole, in NEXT_STEP mode, held against CartPole's own equations.

There is no reference to run in lockstep: all rows share one generator. But each observation follows
from the one before, so a step that is lost, invented, or taken by another row's action shows.
"""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from sb3compat._to_sb3.partial_reset import partial_reset_of
from tests.envs import GYMNASIUM
from tests.lockstep import same
from tests.to_sb3.backends.cartpole import (
    RESET_BOUND,
    TOLERANCE,
    X_LIMIT,
    Array,
    after_one_step,
    always,
    at_random,
    check_cartpole,
    native,
    run,
    within,
)


def lean(obs: Array) -> Array:
    """Keep the pole up, but leaning: the cart leaves the track while the pole has not fallen."""
    return (obs[:, 2] + 0.3 * obs[:, 3] > 0.05).astype(np.int64)


def adapted(num_envs: int, limit: int = 500, seed: int = 1) -> Any:
    env = sb3compat.to_sb3(native(num_envs, limit))
    env.seed(seed)
    return env


def test_the_default_of_make_vec_is_the_native_environment() -> None:
    env = sb3compat.VecEnvAdapter(gym.make_vec("CartPole-v1", num_envs=2))
    assert type(env.env).__name__ == "CartPoleVectorEnv"
    assert env.autoreset_mode is AutoresetMode.NEXT_STEP


@pytest.mark.parametrize("num_envs", [1, 2, 7])
def test_transitions_are_true_for_random_actions(num_envs: int) -> None:
    limit = 18
    endings = check_cartpole(adapted(num_envs, limit), at_random(num_envs), 400, limit)
    truncated = [ending for ending in endings if ending.truncated]
    terminated = [ending for ending in endings if not ending.truncated]
    assert len(truncated) > 5 * num_envs
    assert len(terminated) > 5 * num_envs
    assert all(ending.length == limit for ending in truncated)
    assert {ending.row for ending in endings} == set(range(num_envs))


@pytest.mark.parametrize("action", [0, 1])
def test_transitions_are_true_for_constant_actions(action: int) -> None:
    endings = check_cartpole(adapted(5), always(action), 200, 500)
    assert len(endings) > 5 * 15
    assert not any(ending.truncated for ending in endings)
    # Pushed to one side, the pole falls to the other.
    assert all((ending.last[2] < 0) == (action == 1) for ending in endings)


def test_row_terminated_at_the_limit_is_not_truncated() -> None:
    """Both flags at once: an episode that terminates must not be bootstrapped."""
    limit = 9
    endings = check_cartpole(adapted(5, limit), always(1), 400, limit)
    at_limit = [ending.truncated for ending in endings if ending.length == limit]
    assert set(at_limit) == {True, False}


def test_rows_end_out_of_the_track() -> None:
    endings = check_cartpole(adapted(4), lean, 300, 500)
    assert any(abs(ending.last[0]) > X_LIMIT for ending in endings)
    assert not any(ending.truncated for ending in endings)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_all_rows_may_end_together(limit: int) -> None:
    endings = check_cartpole(adapted(3, limit), at_random(3), 40, limit)
    assert len(endings) == 3 * (40 // limit)
    assert all(ending.truncated for ending in endings)


def test_reset_works_within_an_episode() -> None:
    env = adapted(4, 12)
    policy = at_random(4)
    for steps in (3, 11, 12, 30):
        check_cartpole(env, policy, steps, 12)


def test_environment_used_before_can_be_adapted() -> None:
    source = native(3, 4)
    source.reset()
    for _ in range(4):
        source.step(np.zeros(3, int))
    check_cartpole(sb3compat.to_sb3(source), at_random(3), 20, 4)


def test_same_seed_gives_the_same_stream() -> None:
    first, again, other = (run(adapted(3, 15, seed), 100) for seed in (5, 5, 6))
    same(again, first, "the stream of the same seed")
    assert not np.array_equal(first[0][0], other[0][0])
    assert not np.array_equal(first[-1][0][0], other[-1][0][0])


def test_a_seed_is_used_once() -> None:
    env, again = adapted(3, seed=5), adapted(3, seed=5)
    first, second = env.reset(), env.reset()
    assert not np.isin(second, first).any()
    again.seed(4)
    again.seed(5)
    same(again.reset(), first, "after the last seed given")


def test_user_may_overwrite_returned_values() -> None:
    same(run(adapted(3, 15), 100, scribble=True), run(adapted(3, 15), 100), "the stream")


def test_stream_equals_the_environment_up_to_the_first_ending() -> None:
    raw, ours = native(3), adapted(3, seed=8)
    expected, _ = raw.reset(seed=8)
    same(ours.reset(), expected, "the first observations")
    policy = at_random(3)
    for _ in range(500):
        actions = policy(expected)
        expected, rewards, terminated, truncated, _ = raw.step(actions)
        obs, our_rewards, dones, infos = ours.step(actions)
        same(our_rewards, rewards.astype(np.float32), "rewards")
        same(dones, terminated | truncated, "dones")
        if dones.any():
            break
        same(obs, expected, "observations")
    assert dones.any()
    for i in range(3):
        same(infos[i]["terminal_observation"] if dones[i] else obs[i], expected[i], f"row {i}")


def test_episode_statistics_of_wrappers_are_true() -> None:
    """Both wrappers see each partial reset as such: the episodes of the other rows go on."""
    inner = RecordEpisodeStatistics(native(4, 18), stats_key="inner")
    env = sb3compat.to_sb3(RecordEpisodeStatistics(inner, stats_key="outer"))
    env.seed(3)
    env.reset()
    policy, lengths, seen = at_random(4), np.zeros(4, int), 0
    for _ in range(150):
        _, _, dones, infos = env.step(policy(np.zeros(4)))
        lengths += 1
        for key, i in itertools.product(("inner", "outer"), range(4)):
            assert (key in infos[i]) == bool(dones[i])
            if dones[i]:
                assert infos[i][key]["l"] == infos[i][key]["r"] == lengths[i]
                seen += 1
        lengths[dones] = 0
    assert seen > 40


def test_partial_reset_leaves_other_rows_alone() -> None:
    env = native(4, 5)
    env.reset(seed=0)
    for _ in range(5):
        before, _, _, truncated, _ = env.step(np.zeros(4, int))
    assert truncated.all()
    reset = partial_reset_of(env)
    assert reset is not None
    obs, infos = reset(env, np.array([False, True, False, True]))
    assert infos == {}
    same(obs[[0, 2]], before[[0, 2]], "the rows that were left alone")
    assert within(obs[[1, 3]], -RESET_BOUND, RESET_BOUND)
    # Those still have their autoreset to come; the others step from where they were reset to.
    after, rewards, _, _, _ = env.step(np.ones(4, int))
    same(rewards, np.array([0, 1, 0, 1], rewards.dtype), "rewards")
    assert within(after[[0, 2]], -RESET_BOUND, RESET_BOUND)
    expected = after_one_step(obs, np.ones(4, int), 0.05)
    np.testing.assert_allclose(after[[1, 3]], expected[[1, 3]], atol=TOLERANCE)


def test_options_move_the_bounds_until_the_next_reset() -> None:
    """As without the adapter: its autoreset draws from the bounds of the last reset."""
    env = adapted(6, 10)
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


def test_equal_options_by_row_work_like_options_for_all() -> None:
    one, each = adapted(3, seed=2), adapted(3, seed=2)
    one.set_options({"low": 0.0, "high": 0.5})
    each.set_options([{"low": 0.0, "high": 0.5} for _ in range(3)])
    obs = one.reset()
    assert obs.max() > 0.1
    same(each.reset(), obs, "observations")


def test_ppo_learns(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("stable_baselines3", reason="trains with stable-baselines3")
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    threads = torch.get_num_threads()
    request.addfinalizer(lambda: torch.set_num_threads(threads))
    torch.set_num_threads(1)  # the same sums on every machine
    model = PPO(
        "MlpPolicy",
        VecMonitor(sb3compat.to_sb3(native(16))),
        n_steps=64,
        batch_size=256,
        n_epochs=10,
        gae_lambda=0.8,
        gamma=0.98,
        learning_rate=1e-3,
        seed=1,
        device="cpu",
    )
    model.learn(20_000)
    assert model.ep_info_buffer is not None
    returns = [episode["r"] for episode in model.ep_info_buffer]
    assert len(returns) >= 50
    # Random actions give 22.
    assert np.mean(returns) > 66


@pytest.mark.jax
@pytest.mark.skipif(
    GYMNASIUM < (1, 2), reason="before Gymnasium 1.2, the wrapper does not take NumPy actions"
)
def test_torch_observations_of_a_wrapper_are_converted() -> None:
    pytest.importorskip("torch", reason="converts to torch")
    pytest.importorskip("array_api_compat", reason="Gymnasium converts with array-api-compat")
    from gymnasium.wrappers.vector import NumpyToTorch

    def converted() -> Any:
        env = sb3compat.to_sb3(NumpyToTorch(native(4, 15)))
        env.seed(3)
        return env

    endings = check_cartpole(converted(), at_random(4), 200, 15)
    assert {ending.truncated for ending in endings} == {True, False}
    plain = sb3compat.to_sb3(native(4, 15))
    plain.seed(3)
    expected = run(plain, 60)
    same(run(converted(), 60), expected, "the stream through torch")
    same(run(converted(), 60, scribble=True), expected, "the stream, overwritten")


def test_cartpole_subclass_with_a_step_of_its_own_is_not_bypassed() -> None:
    from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

    class Shaped(CartPoleVectorEnv):
        def step(self, action: Any) -> Any:
            obs, rewards, *rest = super().step(action)
            return obs, 2 * rewards, *rest

    class Renamed(CartPoleVectorEnv):
        sutton = True

    check_cartpole(sb3compat.to_sb3(Renamed(num_envs=3, max_episode_steps=9)), at_random(3), 30, 9)
    source = Shaped(num_envs=3, max_episode_steps=9)
    with pytest.raises(
        sb3compat.PartialResetError, match=r"CartPoleVectorEnv does not hold.*'step'"
    ):
        sb3compat.to_sb3(source)
    known = partial_reset_of(CartPoleVectorEnv(num_envs=3))
    assert known is not None
    sb3compat.register_partial_reset(Shaped, known)
    env = sb3compat.to_sb3(source)
    env.reset()
    for _ in range(30):
        np.testing.assert_array_equal(env.step(np.ones(3, int))[1], [2, 2, 2])
