"""The adapters of sb3compat, both ways and round trips, and above what others break."""

from __future__ import annotations

from typing import Any

from conformance.targets.registry import BOUNDS, MODES, single, target

IDS = ("CartPole-v1", "Blackjack-v1")


@target(single=single, options=BOUNDS, mode=MODES, env_id=IDS[:1])
@target(single=single, mode=MODES, env_id=IDS[1:])
def sync_to_sb3(mode: str, env_id: str) -> Any:
    """to_sb3 of SyncVectorEnv over {env_id}, {mode}, held against single environments."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    from sb3compat import to_sb3

    make = [lambda: gym.make(env_id)] * 3
    return to_sb3(SyncVectorEnv(make, autoreset_mode=AutoresetMode[mode]))


@target(mode=MODES)
def async_to_sb3(mode: str) -> Any:
    """to_sb3 of AsyncVectorEnv over CartPole-v1, {mode}."""
    import gymnasium as gym
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    from sb3compat import to_sb3

    make = [lambda: gym.make("CartPole-v1")] * 3
    return to_sb3(AsyncVectorEnv(make, autoreset_mode=AutoresetMode[mode]))


@target()
def wrapped_to_sb3() -> Any:
    """to_sb3 of SyncVectorEnv over FrozenLake-v1 below two vector wrappers, rendered."""
    import gymnasium as gym
    from gymnasium.wrappers.vector import ClipReward, RecordEpisodeStatistics

    from sb3compat import to_sb3

    env = gym.make_vec("FrozenLake-v1", num_envs=3, render_mode="rgb_array")
    return to_sb3(ClipReward(RecordEpisodeStatistics(env), -1, 1))


@target()
def native_to_sb3() -> Any:
    """to_sb3 of Gymnasium's native CartPole-v1."""
    import gymnasium as gym

    from sb3compat import to_sb3

    return to_sb3(gym.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point"))


@target(single=single, options=BOUNDS, mode=MODES, env_id=IDS[:1])
@target(single=single, mode=MODES, env_id=IDS[1:])
def dummy_to_gymnasium(mode: str, env_id: str) -> Any:
    """to_gymnasium of DummyVecEnv over {env_id}, {mode}, held against single environments."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode
    from stable_baselines3.common.vec_env import DummyVecEnv

    from sb3compat import to_gymnasium

    make = [lambda: gym.make(env_id)] * 3
    return to_gymnasium(DummyVecEnv(make), autoreset_mode=AutoresetMode[mode])


@target(mode=MODES)
def subproc_to_gymnasium(mode: str) -> Any:
    """to_gymnasium of SubprocVecEnv over CartPole-v1, {mode}."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode
    from stable_baselines3.common.vec_env import SubprocVecEnv

    from sb3compat import to_gymnasium

    make = [lambda: gym.make("CartPole-v1")] * 3
    env = SubprocVecEnv(make, start_method="fork")
    return to_gymnasium(env, autoreset_mode=AutoresetMode[mode])


@target(single=single, options=BOUNDS, env_id=IDS[:1])
@target(single=single, env_id=IDS[1:])
def parallel(env_id: str) -> Any:
    """ParallelVecEnv over {env_id}, two workers, held against single environments."""
    import gymnasium as gym

    from sb3compat import ParallelVecEnv

    return ParallelVecEnv([lambda: gym.make(env_id)] * 3, workers=2, start_method="fork")


@target()
def parallel_parts() -> Any:
    """ParallelVecEnv over a single, a vector and a nested environment of CartPole-v1."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    from sb3compat import ParallelVecEnv

    def make() -> Any:
        return gym.make("CartPole-v1")

    def vector() -> Any:
        return SyncVectorEnv([make], autoreset_mode=AutoresetMode.SAME_STEP)

    def nested() -> Any:
        return ParallelVecEnv([make], start_method="fork")

    return ParallelVecEnv([make, vector, nested], workers=2, start_method="fork")


@target(single=single, options=BOUNDS, mode=MODES, env_id=IDS[:1])
def parallel_to_gymnasium(mode: str, env_id: str) -> Any:
    """to_gymnasium of ParallelVecEnv over {env_id}, {mode}, held against single environments."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode

    from sb3compat import ParallelVecEnv, to_gymnasium

    make = [lambda: gym.make(env_id)] * 3
    env = ParallelVecEnv(make, workers=2, start_method="fork")
    return to_gymnasium(env, autoreset_mode=AutoresetMode[mode])


@target()
def monitored_to_gymnasium() -> Any:
    """to_gymnasium of VecMonitor over DummyVecEnv over CartPole-v1."""
    import gymnasium as gym
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    from sb3compat import to_gymnasium

    return to_gymnasium(VecMonitor(DummyVecEnv([lambda: gym.make("CartPole-v1")] * 3)))


@target(single=single, options=BOUNDS, mode=MODES, env_id=IDS[:1])
@target(single=single, mode=MODES, env_id=IDS[1:])
def dummy_there_and_back(mode: str, env_id: str) -> Any:
    """to_sb3 of to_gymnasium of DummyVecEnv over {env_id}, by way of {mode}."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode
    from stable_baselines3.common.vec_env import DummyVecEnv

    from sb3compat import to_gymnasium, to_sb3

    make = [lambda: gym.make(env_id)] * 3
    return to_sb3(to_gymnasium(DummyVecEnv(make), autoreset_mode=AutoresetMode[mode]))


@target(mode=MODES)
def sync_there_and_back(mode: str) -> Any:
    """to_gymnasium of to_sb3 of SyncVectorEnv over Blackjack-v1, {mode}."""
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    from sb3compat import to_gymnasium, to_sb3

    make = [lambda: gym.make("Blackjack-v1")] * 3
    there = to_sb3(SyncVectorEnv(make, autoreset_mode=AutoresetMode[mode]))
    return to_gymnasium(there, autoreset_mode=AutoresetMode[mode])


@target("ale-py", mode=MODES[:2])
def ale_to_sb3(mode: str) -> Any:
    """to_sb3 of ale-py's AtariVectorEnv, {mode}."""
    from ale_py.vector_env import AtariVectorEnv
    from gymnasium.vector import AutoresetMode

    from sb3compat import to_sb3

    env = AtariVectorEnv(
        "asterix", num_envs=3, max_num_frames_per_episode=400, autoreset_mode=AutoresetMode[mode]
    )
    return to_sb3(env)


@target("envpool")
def envpool_to_sb3() -> Any:
    """to_sb3 of EnvPool's CartPole-v1."""
    import envpool

    from sb3compat import to_sb3

    return to_sb3(envpool.make_gymnasium("CartPole-v1", num_envs=3))


@target("jax")
def phys2d_to_sb3() -> Any:
    """to_sb3 of Gymnasium's phys2d/CartPole-v1 with JAX."""
    import gymnasium as gym

    from sb3compat import to_sb3

    env = gym.make_vec("phys2d/CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
    return to_sb3(env)


@target("mo-gymnasium", refused=True)
def mo_gymnasium_to_sb3() -> Any:
    """to_sb3 of MO-Gymnasium's MOSyncVectorEnv, whose rewards are vectors."""
    import mo_gymnasium as mo_gym

    from sb3compat import to_sb3

    make = [lambda: mo_gym.make("deep-sea-treasure-v0")] * 3
    return to_sb3(mo_gym.wrappers.vector.MOSyncVectorEnv(make))


@target("metaworld")
def metaworld_to_sb3() -> Any:
    """to_sb3 of Meta-World's MT10, with episodes of at most 20 steps."""
    import gymnasium as gym
    import metaworld  # noqa: F401

    from sb3compat import to_sb3

    env = gym.make_vec("Meta-World/MT10", vector_strategy="sync", seed=1, max_episode_steps=20)
    return to_sb3(env)
