"""Rows on a Ray cluster, here of one node: a few actors against an actor for each environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from envs import ImageEnv
from measure import Row, Work, compare, make_actions

import sb3compat

make_cartpole = partial(gym.make, "CartPole-v1")
MAKERS: dict[str, Callable[[], Any]] = {"CartPole": make_cartpole, "images": ImageEnv}
WORKERS = 2
N = 64


class EnvActor:
    """One environment that resets itself, as in the thread of SB3 #1345."""

    def make(self, env_fn: Callable[[], Any]) -> None:
        self.env = env_fn()

    def reset(self) -> Any:
        return self.env.reset()[0]

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info["terminal_observation"] = obs
            info["TimeLimit.truncated"] = truncated and not terminated
            obs, _ = self.env.reset()
        return obs, reward, terminated or truncated, info


@contextmanager
def initialised() -> Iterator[Any]:
    """Ray, started for the benchmark; the number of cores is only what it thinks there are."""
    import ray

    ray.init(address="local", num_cpus=N + WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()


def stepping_actors(ray: Any, actors: Sequence[Any], env_fn: Callable[[], Any]) -> Work:
    """A step of them, with the same actions and results as of a `VecEnv`."""
    ray.get([actor.make.remote(env_fn) for actor in actors])
    ray.get([actor.reset.remote() for actor in actors])
    actions = make_actions(len(actors))

    def step() -> Any:
        sent = zip(actors, next(actions), strict=True)
        results = ray.get([actor.step.remote(action) for actor, action in sent])
        obs, rewards, dones, infos = zip(*results, strict=True)
        return np.stack(obs), np.array(rewards, np.float32), np.array(dones), infos

    return step


def stepping(env: Any) -> Work:
    actions = make_actions(env.num_envs)
    env.seed(0)
    env.reset()
    return lambda: env.step(next(actions))


def compare_with_single_actors(rounds: int) -> Iterator[Row]:
    """The topic `ray` of `make bench`."""
    with initialised() as ray:
        # Ray starts as many processes as it has been told that there are cores.
        actors = [ray.remote(EnvActor).remote() for _ in range(N)]
        ray.get([actor.make.remote(make_cartpole) for actor in actors])
        for name, make in MAKERS.items():
            env = sb3compat.ParallelVecEnv([make] * N, workers=WORKERS, backend="ray")
            sides = stepping(env), "an actor for each", stepping_actors(ray, actors, make)
            yield compare(f"Ray {name}, 2 actors", N, *sides, rounds=rounds, aim=0.1, frames=N)
            env.close()
