"""Training gives the same weights as over `DummyVecEnv`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import gymnasium as gym
import pytest

import sb3compat
from tests.envs import Identity
from tests.lockstep import same
from tests.to_sb3.driving import SAME_STEP, made

pytest.importorskip("stable_baselines3", reason="trains with stable-baselines3")

import stable_baselines3
import torch
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

# So short that episodes often end by the limit: then the value of the last observation counts.
CARTPOLE = partial(gym.make, "CartPole-v1", max_episode_steps=15)
PENDULUM = partial(gym.make, "Pendulum-v1", max_episode_steps=15)
FLIPPING = partial(BitFlippingEnv, n_bits=5)
ROLLED = {"n_steps": 20, "batch_size": 20, "n_epochs": 2}
REPLAYED = {"learning_starts": 40, "buffer_size": 200, "batch_size": 32}
# The target network is replaced often, so that a wrong bootstrap reaches the weights.
TARGETED = {**REPLAYED, "target_update_interval": 20, "exploration_final_eps": 0.5}
HER = {
    **REPLAYED,
    "replay_buffer_class": HerReplayBuffer,
    "replay_buffer_kwargs": {"n_sampled_goal": 4, "copy_info_dict": True},
}
# Each algorithm and its policy, its sub-environment, and arguments of its own. Equal streams, which
# are compared elsewhere, give equal weights: these ask for different things.
TRAININGS: dict[str, tuple[str, str, Callable[[], Any], dict[str, Any]]] = {
    "ppo": ("PPO", "MlpPolicy", CARTPOLE, ROLLED),
    "dqn": ("DQN", "MlpPolicy", CARTPOLE, TARGETED),
    "sac": ("SAC", "MlpPolicy", PENDULUM, REPLAYED),
    "her": ("DQN", "MultiInputPolicy", FLIPPING, HER),
    "recurrent-ppo": ("RecurrentPPO", "MlpLstmPolicy", CARTPOLE, ROLLED),
}


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def train(name: str, build: Callable[[list[Any]], VecEnv]) -> dict[str, Any]:
    """The weights after a training on what `build` makes of two sub-environments."""
    algorithm, policy, make, kwargs = TRAININGS[name]
    own = hasattr(stable_baselines3, algorithm)
    library = stable_baselines3 if own else pytest.importorskip("sb3_contrib")
    common = {"seed": 3, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}
    env = build([make] * 2)
    with one_thread():
        model = getattr(library, algorithm)(policy, env, **common, **kwargs).learn(200)
    env.close()
    return {name: value.numpy().copy() for name, value in model.policy.state_dict().items()}


@cache
def reference(name: str) -> dict[str, Any]:
    return train(name, DummyVecEnv)


def check_weights(name: str, build: Callable[[list[Any]], VecEnv]) -> None:
    """Training ends with the weights that `DummyVecEnv` gives."""
    same(train(name, build), reference(name))


def adapter(fns: list[Any]) -> Any:
    """SB3's own class, presented to Gymnasium, in one of Gymnasium's wrappers."""
    return Identity(sb3compat.to_gymnasium(DummyVecEnv(fns), autoreset_mode="Disabled"))


# Each training, and what it trains on.
SOURCES: dict[str, Any] = {
    # Under a wrapper, the vector environment's own `step` and `reset` are used.
    "ppo": partial(made, "sync wrapped"),
    "dqn": partial(made, "sync", mode=SAME_STEP),
    "sac": adapter,
    "her": partial(made, "async unshared"),
    "recurrent-ppo": partial(made, "sync"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_training_gives_the_same_weights(name: str) -> None:
    check_weights(name, lambda fns: sb3compat.to_sb3(SOURCES[name](fns)))
