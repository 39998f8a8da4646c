"""Stable-Baselines3's own VecEnvs."""

from __future__ import annotations

from typing import Any

from conformance.targets.registry import BOUNDS, single, target

IDS = ("CartPole-v1", "Blackjack-v1", "Pendulum-v1")


def slippery() -> Any:
    import gymnasium as gym

    return gym.make("FrozenLake-v1")


def rendered() -> Any:
    import gymnasium as gym

    return gym.make("FrozenLake-v1", render_mode="rgb_array")


@target(env_id=IDS[:2])
def dummy(env_id: str) -> Any:
    """DummyVecEnv over {env_id}."""
    import gymnasium as gym
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: gym.make(env_id)] * 3)


@target(single=single, options=BOUNDS, env_id=IDS[:1])
@target(single=single, env_id=IDS[2:])
def dummy_referenced(env_id: str) -> Any:
    """DummyVecEnv over {env_id}, held against single environments."""
    import gymnasium as gym
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: gym.make(env_id)] * 3)


@target(single=rendered)
def dummy_rendered() -> Any:
    """DummyVecEnv over FrozenLake-v1, rendered and held against single environments."""
    import gymnasium as gym
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: gym.make("FrozenLake-v1", render_mode="rgb_array")] * 3)


@target()
def dummy_alone() -> Any:
    """DummyVecEnv over one CartPole-v1."""
    import gymnasium as gym
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: gym.make("CartPole-v1")])


@target(env_id=IDS[:2])
def subproc(env_id: str) -> Any:
    """SubprocVecEnv over {env_id}."""
    import gymnasium as gym
    from stable_baselines3.common.vec_env import SubprocVecEnv

    return SubprocVecEnv([lambda: gym.make(env_id)] * 3, start_method="fork")


@target(inner=("DummyVecEnv", "SubprocVecEnv"), wrapper=("VecMonitor", "VecNormalize"))
def wrapped(inner: str, wrapper: str) -> Any:
    """{wrapper} over {inner} over CartPole-v1."""
    import gymnasium as gym
    from stable_baselines3.common import vec_env

    given = {"start_method": "fork"} if inner == "SubprocVecEnv" else {}
    inside = getattr(vec_env, inner)([lambda: gym.make("CartPole-v1")] * 3, **given)
    return getattr(vec_env, wrapper)(inside)


@target(single=slippery)
def monitored_referenced() -> Any:
    """VecMonitor over DummyVecEnv over FrozenLake-v1, held against single environments."""
    import gymnasium as gym
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    return VecMonitor(DummyVecEnv([lambda: gym.make("FrozenLake-v1")] * 3))


@target(inner=("DummyVecEnv", "SubprocVecEnv"))
def stacked(inner: str) -> Any:
    """VecFrameStack over {inner} over CartPole-v1."""
    import gymnasium as gym
    from stable_baselines3.common import vec_env

    given = {"start_method": "fork"} if inner == "SubprocVecEnv" else {}
    inside = getattr(vec_env, inner)([lambda: gym.make("CartPole-v1")] * 3, **given)
    return vec_env.VecFrameStack(inside, n_stack=3)
