"""The adapted environment and `DummyVecEnv`, stepped and trained on in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from tests.envs import Identity, MakeEnv, script
from tests.lockstep import same

EnvFns = list[Callable[[], gym.Env[Any, Any]]]
Source = Callable[[EnvFns], VectorEnv[Any, Any, Any]]


def adapter(fns: EnvFns) -> Any:
    """SB3's own class, presented to Gymnasium, in one of Gymnasium's wrappers."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    return Identity(sb3compat.to_gymnasium(DummyVecEnv(fns), autoreset_mode="Disabled"))


SOURCES: dict[str, Source] = {
    "sync-next": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.NEXT_STEP),
    "sync-same": partial(SyncVectorEnv, autoreset_mode=AutoresetMode.SAME_STEP),
    "async-next": partial(AsyncVectorEnv, autoreset_mode=AutoresetMode.NEXT_STEP),
    "adapter": adapter,
}


def small() -> dict[str, Any]:
    # A new dict each time: algorithms write into `policy_kwargs`.
    return {"seed": 3, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}


@contextmanager
def both(source: Source, fns: EnvFns, wrap: Any = lambda env: env) -> Iterator[tuple[Any, Any]]:
    """The adapted environment and the reference, in the same wrappers."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    ours = wrap(sb3compat.to_sb3(source(fns)))
    reference = wrap(DummyVecEnv(fns))
    try:
        yield ours, reference
    finally:
        ours.close()
        reference.close()


def scripted(num_envs: int = 3, **kwargs: Any) -> EnvFns:
    kwargs = {"lengths": (4, 3, 6), "endings": ("terminated", "truncated", "both"), **kwargs}
    return [MakeEnv(script(**kwargs), row) for row in range(num_envs)]


def cartpoles(num_envs: int = 3, limit: int = 20) -> EnvFns:
    return [partial(gym.make, "CartPole-v1", max_episode_steps=limit)] * num_envs


def stream(env: Any, steps: int = 25, seed: int = 5) -> list[Any]:
    """The results of the environment, without the seconds that an episode took."""
    env.seed(seed)
    env.action_space.seed(seed)
    record = [env.reset(), [dict(info) for info in env.reset_infos]]
    for _ in range(steps):
        actions = np.stack([env.action_space.sample() for _ in range(env.num_envs)])
        obs, rewards, dones, infos = env.step(actions)
        for info in infos:
            if "episode" in info:
                info["episode"] = {k: v for k, v in info["episode"].items() if k != "t"}
        reset_infos = [dict(info) for info in env.reset_infos]
        record.append((obs, rewards, dones, infos, reset_infos))
    return record


def weights(model: Any) -> dict[str, Any]:
    return {name: value.numpy().copy() for name, value in model.policy.state_dict().items()}


def check_same_training(source: Source, fns: EnvFns, train: Callable[[Any], Any]) -> None:
    """`train` returns a model (or several things to compare); it learns, and learns the same."""
    with both(source, fns) as (ours, reference):
        expected = train(reference)
        got = train(ours)
    if hasattr(got, "policy"):
        got, expected = weights(got), weights(expected)
    same(got, expected)


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
