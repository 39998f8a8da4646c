"""Short trainings of many algorithms, over the adapted environment and over `DummyVecEnv`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

from tests.lockstep import same

pytest.importorskip("stable_baselines3", reason="trains with stable-baselines3")

import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, HerReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.envs import BitFlippingEnv, SimpleMultiObsEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

EnvFns = list[Callable[[], gym.Env[Any, Any]]]


def weights(model: Any) -> dict[str, Any]:
    return {name: value.numpy().copy() for name, value in model.policy.state_dict().items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# So short that episodes often end by the limit: then the value of the last observation counts.
LIMIT = 15


def limited(env_id: str, rows: int, limit: int = LIMIT) -> EnvFns:
    return [partial(gym.make, env_id, max_episode_steps=limit)] * rows


def pictures_and_positions() -> gym.Env[Any, Any]:
    # Its pictures are drawn at random when it is made.
    np.random.seed(0)
    env = SimpleMultiObsEnv(random_start=False)
    env.max_count = LIMIT
    return env


class Training(NamedTuple):
    """An algorithm, its environment, and the number of steps.

    Attributes:
        algorithm: The class.
        fns: The functions that make the sub-environments.
        kwargs: Of the algorithm.
        steps: Of all rows together.
        policy: Its name.
    """

    algorithm: Any
    fns: EnvFns
    kwargs: dict[str, Any]
    steps: int = 120
    policy: str = "MlpPolicy"


REPLAYED = {"learning_starts": 40, "buffer_size": 200, "batch_size": 32}
# The target network is replaced often, so that a wrong bootstrap reaches the weights.
TARGETED = {**REPLAYED, "target_update_interval": 20, "exploration_final_eps": 0.5}
ROLLED = {"n_steps": 20, "batch_size": 20, "n_epochs": 2}
HER = {
    **REPLAYED,
    "replay_buffer_class": HerReplayBuffer,
    "replay_buffer_kwargs": {"n_sampled_goal": 4, "copy_info_dict": True},
}


# Algorithms that step and reset in ways of their own; the others share the loops of these.
TRAININGS = {
    "ppo": Training(PPO, limited("CartPole-v1", 4, 20), {**ROLLED, "n_steps": 40}, 480),
    "ppo-dict": Training(
        PPO,
        [pictures_and_positions] * 2,
        {**ROLLED, "policy_kwargs": {"features_extractor_kwargs": {"cnn_output_dim": 4}}},
        40,
        "MultiInputPolicy",
    ),
    "a2c": Training(A2C, limited("CartPole-v1", 3), {"n_steps": 8}, 480),
    "dqn": Training(DQN, limited("CartPole-v1", 2), TARGETED, 300),
    "sac": Training(SAC, limited("Pendulum-v1", 2), REPLAYED),
    "her": Training(DQN, [partial(BitFlippingEnv, n_bits=5)] * 2, HER, policy="MultiInputPolicy"),
}


class Endings(BaseCallback):
    """Count how episodes end."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def _on_step(self) -> bool:
        for done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if done:
                self.seen["truncated" if info["TimeLimit.truncated"] else "terminated"] += 1
        return True


class Trained(NamedTuple):
    """The weights before and after a training, and how its episodes ended."""

    before: dict[str, Any]
    after: dict[str, Any]
    endings: Counter[str]


def train(name: str, build: Callable[[EnvFns], VecEnv]) -> Trained:
    """Train on the environment that `build` makes of the functions; close it."""
    training = TRAININGS[name]
    endings = Endings()
    env = build(training.fns)
    # New dicts each time: algorithms write into `policy_kwargs`.
    policy_kwargs = {"net_arch": [8], **training.kwargs.get("policy_kwargs", {})}
    own = {**training.kwargs, "policy_kwargs": policy_kwargs, "seed": 3, "device": "cpu"}
    with one_thread():
        try:
            model = training.algorithm(training.policy, env, **own)
            before = weights(model)
            model.learn(training.steps, callback=endings)
        finally:
            env.close()
    return Trained(before, weights(model), endings.seen)


@cache
def reference(name: str) -> Trained:
    """What `DummyVecEnv` gives; a training without truncated episodes would prove little."""
    trained = train(name, DummyVecEnv)
    assert trained.endings["truncated"]
    changed = [key for key in trained.before if (trained.before[key] != trained.after[key]).any()]
    assert changed
    return trained


def check_weights(name: str, build: Callable[[EnvFns], VecEnv]) -> None:
    """Training ends with the weights that `DummyVecEnv` gives, and has seen the same endings."""
    expected, ours = reference(name), train(name, build)
    assert ours.endings == expected.endings
    same(ours.after, expected.after)
