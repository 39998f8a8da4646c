"""An algorithm trained on an adapted environment ends with the weights that `DummyVecEnv` gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium as gym
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from tests.covering import chosen
from tests.envs import Identity

pytest.importorskip("stable_baselines3", reason="trains with stable-baselines3")

import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

MODES = list(AutoresetMode)
EnvFn = Callable[[], gym.Env[Any, Any]]
Build = Callable[[list[EnvFn], AutoresetMode], VectorEnv[Any, Any, Any]]


class Task(NamedTuple):
    """An algorithm, its environment, and the number of steps."""

    algorithm: type[BaseAlgorithm]
    env_id: str
    num_envs: int
    steps: int
    kwargs: tuple[tuple[str, Any], ...]


TASKS = {
    "ppo": Task(PPO, "CartPole-v1", 4, 768, (("n_steps", 48), ("batch_size", 64), ("n_epochs", 2))),
    "a2c": Task(A2C, "CartPole-v1", 3, 720, (("n_steps", 8),)),
    # The target network is replaced often, so that a wrong bootstrap reaches the weights.
    "dqn": Task(
        DQN,
        "CartPole-v1",
        2,
        900,
        (
            ("buffer_size", 1000),
            ("learning_starts", 100),
            ("target_update_interval", 50),
            ("exploration_final_eps", 0.5),
        ),
    ),
}
CONTINUOUS = Task(PPO, "Pendulum-v1", 2, 480, (("n_steps", 60), ("batch_size", 60)))


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

    before: dict[str, torch.Tensor]
    after: dict[str, torch.Tensor]
    endings: Counter[str]


def make_env(env_id: str) -> gym.Env[Any, Any]:
    # So short that episodes often end by the limit: then the value of the last observation counts.
    return gym.make(env_id, max_episode_steps=20)


def env_fns(task: Task) -> list[EnvFn]:
    return [partial(make_env, task.env_id)] * task.num_envs


def weights(model: BaseAlgorithm) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}


def train(task: Task, env: VecEnv) -> Trained:
    endings = Endings()
    try:
        model = task.algorithm(
            "MlpPolicy",
            env,
            seed=11,
            device="cpu",
            policy_kwargs={"net_arch": [16]},
            **dict(task.kwargs),
        )
        before = weights(model)
        model.learn(task.steps, callback=endings)
    finally:
        env.close()
    return Trained(before, weights(model), endings.seen)


@cache
def reference(task: Task) -> Trained:
    return train(task, DummyVecEnv(env_fns(task)))


def check(task: Task, build: Build, mode: AutoresetMode) -> None:
    expected = reference(task)
    ours = train(task, sb3compat.to_sb3(build(env_fns(task), mode)))
    assert ours.endings == expected.endings
    assert ours.after.keys() == expected.after.keys()
    different = [
        name for name, tensor in expected.after.items() if not torch.equal(ours.after[name], tensor)
    ]
    assert not different, f"weights that differ from those trained on DummyVecEnv: {different}"


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def sync(fns: list[EnvFn], mode: AutoresetMode) -> VectorEnv[Any, Any, Any]:
    return SyncVectorEnv(fns, autoreset_mode=mode)


def parallel(fns: list[EnvFn], mode: AutoresetMode) -> VectorEnv[Any, Any, Any]:
    return AsyncVectorEnv(fns, autoreset_mode=mode)


def unshared(fns: list[EnvFn], mode: AutoresetMode) -> VectorEnv[Any, Any, Any]:
    return AsyncVectorEnv(fns, autoreset_mode=mode, shared_memory=False)


def wrapped(fns: list[EnvFn], mode: AutoresetMode) -> VectorEnv[Any, Any, Any]:
    """Under a wrapper, the vector environment's own `step` and `reset` are used."""
    return Identity(sync(fns, mode))


@pytest.mark.parametrize("task", [*TASKS.values(), CONTINUOUS], ids=[*TASKS, "ppo-pendulum"])
def test_reference_depends_on_how_episodes_end(task: Task) -> None:
    """Without training, or without truncated episodes, equal weights would prove little."""
    before, after, endings = reference(task)
    changed = [name for name, tensor in before.items() if not torch.equal(after[name], tensor)]
    assert len(changed) > len(before) / 2
    assert endings["truncated"] >= 5
    assert (endings["terminated"] >= 5) == (task is not CONTINUOUS)


BUILDS = {"sync": sync, "parallel": parallel, "unshared": unshared, "wrapped": wrapped}
# The streams are compared in all modes elsewhere; a training takes long.
CASES = [
    (task, *pair)
    for seed, task in enumerate(TASKS)
    for pair in chosen(((build, mode.name) for build in BUILDS for mode in MODES), seed)
]


@pytest.mark.parametrize(("name", "build", "mode"), CASES)
def test_training_gives_the_same_weights(name: str, build: str, mode: str) -> None:
    check(TASKS[name], BUILDS[build], AutoresetMode[mode])


@pytest.mark.parametrize(
    ("build", "mode"), [(sync, AutoresetMode.SAME_STEP), (parallel, AutoresetMode.NEXT_STEP)]
)
def test_training_with_continuous_actions_gives_the_same_weights(
    build: Build, mode: AutoresetMode
) -> None:
    check(CONTINUOUS, build, mode)
