"""Gymnasium's own VectorEnvs."""

from __future__ import annotations

from typing import Any

from conformance.targets.registry import BOUNDS, MODES, single, target

IDS = ("CartPole-v1", "Blackjack-v1", "Pendulum-v1")


@target(mode=MODES, env_id=IDS[:2])
def sync(mode: str, env_id: str) -> Any:
    """SyncVectorEnv over {env_id}, {mode}."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    return SyncVectorEnv([lambda: gym.make(env_id)] * 3, autoreset_mode=AutoresetMode[mode])


@target(single=single, options=BOUNDS, mode=MODES, env_id=IDS[:1])
@target(single=single, mode=MODES, env_id=IDS[2:])
def sync_referenced(mode: str, env_id: str) -> Any:
    """SyncVectorEnv over {env_id}, {mode}, held against single environments."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    return SyncVectorEnv([lambda: gym.make(env_id)] * 3, autoreset_mode=AutoresetMode[mode])


@target(mode=MODES)
def sync_rendered(mode: str) -> Any:
    """SyncVectorEnv over FrozenLake-v1, {mode}, rendered."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    make = [lambda: gym.make("FrozenLake-v1", render_mode="rgb_array")] * 3
    return SyncVectorEnv(make, autoreset_mode=AutoresetMode[mode])


@target(mode=MODES)
def asynchronous(mode: str) -> Any:
    """AsyncVectorEnv over CartPole-v1, {mode}."""
    import gymnasium as gym
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    make = [lambda: gym.make("CartPole-v1")] * 3
    return AsyncVectorEnv(make, autoreset_mode=AutoresetMode[mode])


@target(mode=MODES)
def asynchronous_piped(mode: str) -> Any:
    """AsyncVectorEnv over Blackjack-v1, {mode}, without shared memory."""
    import gymnasium as gym
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    make = [lambda: gym.make("Blackjack-v1")] * 3
    return AsyncVectorEnv(make, shared_memory=False, autoreset_mode=AutoresetMode[mode])


@target()
def native_cartpole() -> Any:
    """CartPoleVectorEnv, Gymnasium's native CartPole-v1."""
    import gymnasium as gym

    return gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")


@target("jax", env_id=("phys2d/CartPole-v1", "phys2d/Pendulum-v0"))
def functional(env_id: str) -> Any:
    """{env_id} with JAX, vectorized by itself."""
    import gymnasium as gym

    return gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point")


# Each instance compiles anew what it does: Blackjack takes 20 s for that.
@target("jax", env_id=("tabular/CliffWalking-v0",))
@target("jax", env_id=("tabular/Blackjack-v0",))
def tabular(env_id: str) -> Any:
    """{env_id} with JAX, in a SyncVectorEnv."""
    import gymnasium as gym

    return gym.make_vec(env_id, num_envs=3, vectorization_mode="sync", max_episode_steps=100)


@target("jax")
def functional_cliffwalking() -> Any:
    """FunctionalJaxVectorEnv over the functional CliffWalking with JAX."""
    from gymnasium.envs.functional_jax_env import FunctionalJaxVectorEnv
    from gymnasium.envs.tabular.cliffwalking import CliffWalkingFunctional

    return FunctionalJaxVectorEnv(CliffWalkingFunctional(), num_envs=3, max_episode_steps=100)
