"""The examples of the guide of Stable-Baselines3 about environments."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import RescaleAction, TransformReward

import sb3compat
from tests.lockstep import same
from tests.to_sb3.sb3.guide import KINDS, LIMIT, changed, check_helpers
from tests.to_sb3.sb3.training import small

pytest.importorskip("stable_baselines3", reason="is about the guide of stable-baselines3")

from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor


@pytest.fixture(params=KINDS)
def cartpoles(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Three CartPoles, as `gym.make_vec` makes them."""
    source = gym.make_vec("CartPole-v1", 3, max_episode_steps=LIMIT, **KINDS[request.param])
    env = sb3compat.to_sb3(source)
    yield env
    env.close()


def test_step_returns_what_the_five_values_of_gymnasium_say(cartpoles: Any) -> None:
    """`dones`, the flag and the last observation say what Gymnasium's five values say."""
    cartpoles.seed(3)
    obs = cartpoles.reset()
    cartpoles.action_space.seed(3)
    lengths = np.zeros(3, int)
    kinds = []
    for _ in range(80):
        actions = np.array([cartpoles.action_space.sample() for _ in range(3)])
        obs, rewards, dones, infos = cartpoles.step(actions)
        assert obs.shape == (3, 4)
        assert rewards.shape == dones.shape == (3,)
        assert type(infos) is list
        lengths += 1
        for i in np.flatnonzero(dones):
            position, _, angle, _ = infos[i]["terminal_observation"]
            terminated = bool(dones[i] and not infos[i]["TimeLimit.truncated"])
            assert terminated == (abs(position) > 2.4 or abs(angle) > np.deg2rad(12))
            assert terminated or lengths[i] == LIMIT
            assert np.all(np.abs(obs[i]) <= 0.05), "the first observation of the next episode"
            kinds.append(terminated)
            lengths[i] = 0
    assert set(kinds) == {True, False}


def test_seeds_and_options_count_for_one_reset(cartpoles: Any) -> None:
    narrow = {"low": -0.001, "high": 0.001}
    assert list(cartpoles.seed(seed=5)) == [5, 6, 7]
    cartpoles.set_options(narrow)
    first = cartpoles.reset()
    second = cartpoles.reset()
    assert np.abs(first).max() <= 0.001 < np.abs(second).max()
    cartpoles.seed(seed=5)
    cartpoles.set_options(narrow)
    same(cartpoles.reset(), first)
    assert (cartpoles.reset() == second).all(), "its random numbers go on where they were"


class MultiTask(gym.Env[Any, Any]):
    """Its friction can be changed at any time, with effect from the next episode on."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.mu = 0.5
        self.steps = 0
        self.used = 0.0

    def set_mu(self, mu: float) -> None:
        self.mu = mu

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.used = 0, self.mu
        return self.np_random.random(2, np.float32), {"used": self.used}

    def step(self, action: Any) -> Any:
        self.steps += 1
        obs = self.np_random.random(2, np.float32)
        return obs, self.used, False, self.steps == 4, {"used": self.used}


def test_attributes_are_set_by_a_setter_or_by_set_wrapper_attr() -> None:
    def run(env: VecEnv) -> list[Any]:
        seen = [env.env_method("get_wrapper_attr", "mu")]
        assert env.has_attr("mu")
        assert not env.has_attr("nu")
        env.env_method("set_mu", 0.1)
        env.env_method("set_wrapper_attr", "mu", 0.3, indices=[1])
        seen.append(env.env_method("get_wrapper_attr", "mu"))
        env.reset()
        seen.append(list(env.step(np.zeros(2, int))[1]))
        # This goes to the monitor around it, and hides what the environment itself uses.
        env.set_attr("mu", 9.0)
        seen.append(env.get_attr("mu"))
        env.reset()
        seen.append(list(env.step(np.zeros(2, int))[1]))
        return seen

    f = np.float32
    expected = [[0.5, 0.5], [0.1, 0.3], [f(0.1), f(0.3)], [9.0, 9.0], [f(0.1), f(0.3)]]
    same(check_helpers(run, MultiTask, 2), expected)


class Cycle(BaseCallback):
    """Change the friction at each step; remember the one in effect."""

    def __init__(self) -> None:
        super().__init__()
        self.used: list[list[float]] = []

    def _on_step(self) -> bool:
        mus = (0.1, 0.2, 0.5, 0.13, 0.9)
        self.training_env.env_method("set_mu", mus[self.n_calls % 5])
        self.used.append([info["used"] for info in self.locals["infos"]])
        return True


def test_changed_attributes_apply_from_the_next_episode() -> None:
    def run(env: VecEnv) -> Any:
        cycle = Cycle()
        return changed(A2C("MlpPolicy", env, **small()), 60, callback=cycle), cycle.used

    _, used = check_helpers(run, MultiTask, 2)
    by_episode = [{row[0] for row in used[i : i + 4]} for i in range(0, 28, 4)]
    assert all(len(values) == 1 for values in by_episode)
    assert len(set().union(*by_episode)) == 5


def test_gymnasium_wrappers_around_each_sub_environment_work() -> None:
    def run(env: VecEnv) -> Any:
        assert env.env_is_wrapped(RescaleAction) == [True, True]
        assert env.action_space == spaces.Box(-1, 1, (1,), np.float32)
        env.reset()
        halves = np.full((2, 1), 0.5, np.float32)
        return [env.step(halves)[:3] for _ in range(LIMIT + 3)]

    check_helpers(
        run,
        "Pendulum-v1",
        2,
        env_kwargs={"max_episode_steps": LIMIT},
        wrapper_class=RescaleAction,
        wrapper_kwargs={"min_action": -1.0, "max_action": 1.0},
    )


def test_evaluate_policy_uses_the_rewards_inside_the_monitor() -> None:
    """A monitor within other wrappers counts the rewards of the environment itself."""

    def run(env: VecEnv) -> Any:
        assert env.env_is_wrapped(Monitor) == [True, True]
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # SB3 warns where there is no monitor
            returns, lengths = evaluate_policy(policy, env, 6, return_episode_rewards=True)
        assert returns == lengths
        return returns

    policy = A2C("MlpPolicy", DummyVecEnv([lambda: gym.make("CartPole-v1")]), **small())
    tenfold = {"func": lambda reward: 10 * reward}
    check_helpers(run, "CartPole-v1", 2, wrapper_class=TransformReward, wrapper_kwargs=tenfold)


def test_monitors_remember_the_same() -> None:
    def run(env: VecEnv) -> Any:
        env.reset()
        for _ in range(40):
            env.step(np.array([0, 1]))
        times = env.env_method("get_episode_times")
        assert all(row == sorted(row) and len(row) >= 3 for row in times)
        with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
            VecMonitor(env)
        names = ("get_total_steps", "get_episode_rewards", "get_episode_lengths")
        return [env.env_method(name) for name in names]

    check_helpers(run, "CartPole-v1", 2)


def seeded(rank: int) -> gym.Env[Any, Any]:
    env = gym.make("CartPole-v1", max_episode_steps=LIMIT)
    env.reset(seed=10 + rank)
    return env


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "native"])
def test_seeds_set_by_the_functions_are_kept(kind: str) -> None:
    """A first reset without a seed goes on with the random numbers of the function's own reset."""
    cls = gym.vector.SyncVectorEnv if kind.startswith("sync") else gym.vector.AsyncVectorEnv
    fns: Any = [partial(seeded, rank) for rank in range(3)]
    env = sb3compat.to_sb3(cls(fns, **KINDS[kind]["vector_kwargs"]))
    reference = DummyVecEnv(fns)
    same(env.reset(), reference.reset())
    for _ in range(2 * LIMIT):
        same(env.step(np.array([0, 1, 1])), reference.step(np.array([0, 1, 1])))
    env.close()
