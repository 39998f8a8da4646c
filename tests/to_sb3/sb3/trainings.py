"""Short trainings of many algorithms, over the adapted environment and over `DummyVecEnv`."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from tests.envs import BOX
from tests.lockstep import same

pytest.importorskip("stable_baselines3", reason="trains with stable-baselines3")

import stable_baselines3
import torch
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.atari_wrappers import AtariWrapper
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.envs import BitFlippingEnv, SimpleMultiObsEnv
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecFrameStack,
    VecTransposeImage,
)

EnvFns = list[Callable[[], gym.Env[Any, Any]]]


def small() -> dict[str, Any]:
    # A new dict each time: algorithms write into `policy_kwargs`.
    return {"seed": 3, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}


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


class Masked(gym.Env[Any, Any]):
    """One action is forbidden at each step, another one each time; a lock cannot be pickled."""

    observation_space = BOX
    action_space = spaces.Discrete(4)

    def __init__(self, row: int) -> None:
        self.row = row
        self.lock = threading.Lock()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self._obs(), {}

    def step(self, action: Any) -> Any:
        assert self.action_masks()[action], "a forbidden action"
        self.steps += 1
        return self._obs(), float(action == self.steps % 4), False, self.steps == 5 + self.row, {}

    def action_masks(self) -> Any:
        mask = np.ones(4, np.bool_)
        mask[(self.steps + self.row) % 4] = False
        return mask

    def _obs(self) -> Any:
        return self.np_random.random(3, np.float32)


def limited(env_id: str, rows: int, limit: int = LIMIT) -> EnvFns:
    return [partial(gym.make, env_id, max_episode_steps=limit)] * rows


def mujoco(env_id: str, limit: int) -> EnvFns:
    pytest.importorskip("mujoco", reason=f"simulates {env_id}")
    return limited(env_id, 2, limit)


def breakout() -> gym.Env[Any, Any]:
    return AtariWrapper(gym.make("BreakoutNoFrameskip-v4", max_episode_steps=60))


def atari() -> EnvFns:
    gym.register_envs(pytest.importorskip("ale_py", reason="plays Atari games"))
    pytest.importorskip("cv2", reason="shrinks the pictures")
    return [breakout] * 2


def pictures_and_positions() -> gym.Env[Any, Any]:
    # Its pictures are drawn at random when it is made.
    np.random.seed(0)
    env = SimpleMultiObsEnv(random_start=False)
    env.max_count = LIMIT
    return env


def stacked(env: VecEnv) -> VecEnv:
    return VecTransposeImage(VecFrameStack(env, n_stack=4))


class Training(NamedTuple):
    """An algorithm, its environment, and the number of steps.

    Attributes:
        algorithm: Of SB3 or sb3-contrib.
        fns: Gives the functions that make the sub-environments.
        kwargs: Of the algorithm.
        steps: Of all rows together.
        policy: Its name.
        wrap: Puts SB3's wrappers around the environment.
    """

    algorithm: str
    fns: Callable[[], EnvFns]
    kwargs: dict[str, Any] = {}
    steps: int = 120
    policy: str = "MlpPolicy"
    wrap: Callable[[VecEnv], VecEnv] = lambda env: env


CARTPOLES = partial(limited, "CartPole-v1", 2)
PENDULUMS = partial(limited, "Pendulum-v1", 2)
REPLAYED = {"learning_starts": 40, "buffer_size": 200, "batch_size": 32}
# The target network is replaced often, so that a wrong bootstrap reaches the weights.
TARGETED = {**REPLAYED, "target_update_interval": 20}
ROLLED = {"n_steps": 20, "batch_size": 20, "n_epochs": 2}
CNN = {"policy_kwargs": {"features_extractor_kwargs": {"features_dim": 8}}}


HER = {
    **REPLAYED,
    "replay_buffer_class": HerReplayBuffer,
    "replay_buffer_kwargs": {"n_sampled_goal": 4, "copy_info_dict": True},
}
FLIPPING = partial(BitFlippingEnv, n_bits=5)


TRAININGS = {
    "ppo": Training("PPO", partial(limited, "CartPole-v1", 4, 20), {**ROLLED, "n_steps": 40}, 480),
    "ppo-continuous": Training("PPO", PENDULUMS, ROLLED),
    "ppo-dict": Training(
        "PPO",
        lambda: [pictures_and_positions] * 2,
        {**ROLLED, "policy_kwargs": {"features_extractor_kwargs": {"cnn_output_dim": 4}}},
        40,
        "MultiInputPolicy",
    ),
    "ppo-hopper": Training("PPO", partial(mujoco, "Hopper-v5", 24), {**ROLLED, "n_steps": 60}, 240),
    "a2c": Training("A2C", partial(limited, "CartPole-v1", 3), {"n_steps": 8}, 480),
    "a2c-atari": Training("A2C", atari, CNN, 60, "CnnPolicy", stacked),
    "dqn": Training("DQN", CARTPOLES, {**TARGETED, "exploration_final_eps": 0.5}, 300),
    "sac": Training("SAC", PENDULUMS, REPLAYED),
    "sac-cheetah": Training("SAC", partial(mujoco, "HalfCheetah-v5", 9), REPLAYED),
    "td3": Training("TD3", PENDULUMS, REPLAYED),
    "ddpg": Training("DDPG", PENDULUMS, REPLAYED),
    "her": Training("DQN", lambda: [FLIPPING] * 2, HER, policy="MultiInputPolicy"),
    "ars": Training("ARS", CARTPOLES, {"n_delta": 3}),
    "crossq": Training("CrossQ", PENDULUMS, {"learning_starts": 40, "batch_size": 32}),
    "masked-ppo": Training("MaskablePPO", lambda: [partial(Masked, i) for i in range(3)], ROLLED),
    "qrdqn": Training("QRDQN", CARTPOLES, TARGETED),
    "recurrent-ppo": Training("RecurrentPPO", CARTPOLES, ROLLED, policy="MlpLstmPolicy"),
    "tqc": Training("TQC", PENDULUMS, {"learning_starts": 40, "batch_size": 32}),
    "trpo": Training("TRPO", CARTPOLES, {"n_steps": 30, "batch_size": 30}),
}


class Endings(BaseCallback):
    """Count how episodes end."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def _on_step(self) -> bool:
        # ARS has other local variables.
        dones, infos = (self.locals.get(name, ()) for name in ("dones", "infos"))
        for done, info in zip(dones, infos, strict=True):
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
    algorithm = getattr(stable_baselines3, training.algorithm, None)
    if algorithm is None:
        contrib = pytest.importorskip("sb3_contrib")
        algorithm = getattr(contrib, training.algorithm, None)
    if algorithm is None:
        pytest.skip(f"this sb3-contrib has no {training.algorithm}")
    endings = Endings()
    env = training.wrap(build(training.fns()))
    own = {**small(), **training.kwargs}
    own["policy_kwargs"] = {"net_arch": [8], **own["policy_kwargs"]}  # which algorithms write into
    with one_thread():
        try:
            model = algorithm(training.policy, env, **own)
            before = weights(model)
            model.learn(training.steps, callback=endings)
        finally:
            env.close()
    return Trained(before, weights(model), endings.seen)


@cache
def reference(name: str) -> Trained:
    """What `DummyVecEnv` gives; a training without truncated episodes would prove little."""
    trained = train(name, DummyVecEnv)
    assert trained.endings["truncated"] or name == "ars"
    changed = [key for key in trained.before if (trained.before[key] != trained.after[key]).any()]
    assert changed
    return trained


def check_weights(name: str, build: Callable[[EnvFns], VecEnv]) -> None:
    """Training ends with the weights that `DummyVecEnv` gives, and has seen the same endings."""
    expected, ours = reference(name), train(name, build)
    assert ours.endings == expected.endings
    same(ours.after, expected.after)
