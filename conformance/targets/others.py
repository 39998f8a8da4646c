"""Vector environments of other projects, as their documentation makes them."""

from __future__ import annotations

from typing import Any

from conformance.targets.registry import target

# One takes 15 s to make, most of it to draw the tasks.
ONE_WORLD = {"separate_rows": False}


@target("supersuit", "pettingzoo", capabilities=ONE_WORLD)
def supersuit_pursuit() -> Any:
    """SuperSuit's VecEnv for Stable-Baselines3 over PettingZoo's pursuit_v5, two worlds."""
    import supersuit
    from pettingzoo.sisl import pursuit_v5

    world = pursuit_v5.parallel_env(max_cycles=20, n_pursuers=2)
    rows = supersuit.pettingzoo_env_to_vec_env_v1(world)
    return supersuit.concat_vec_envs_v1(rows, 2, base_class="stable_baselines3")


@target("supersuit", "pettingzoo", capabilities=ONE_WORLD)
def supersuit_pistonball() -> Any:
    """SuperSuit's VecEnv for Stable-Baselines3 over PettingZoo's pistonball_v6."""
    import supersuit
    from pettingzoo.butterfly import pistonball_v6

    world = pistonball_v6.parallel_env(n_pistons=3, max_cycles=20)
    rows = supersuit.pettingzoo_env_to_vec_env_v1(world)
    return supersuit.concat_vec_envs_v1(rows, 1, base_class="stable_baselines3")


@target("ale-py", mode=("NEXT_STEP", "SAME_STEP"))
def ale(mode: str) -> Any:
    """ale-py's AtariVectorEnv, {mode}."""
    from ale_py.vector_env import AtariVectorEnv
    from gymnasium.vector import AutoresetMode

    return AtariVectorEnv(
        "asterix", num_envs=3, max_num_frames_per_episode=400, autoreset_mode=AutoresetMode[mode]
    )


@target("envpool", env_id=("CartPole-v1", "Pendulum-v1"))
def envpool(env_id: str) -> Any:
    """EnvPool's {env_id}."""
    import envpool

    return envpool.make_gymnasium(env_id, num_envs=3)


@target("metaworld")
def metaworld_mt10() -> Any:
    """Meta-World's MT10, with episodes of at most 20 steps."""
    import gymnasium as gym
    import metaworld  # noqa: F401

    return gym.make_vec("Meta-World/MT10", vector_strategy="sync", seed=1, max_episode_steps=20)


@target("mo-gymnasium")
def mo_gymnasium() -> Any:
    """MO-Gymnasium's MOSyncVectorEnv over deep-sea-treasure-v0: rewards are vectors."""
    import mo_gymnasium as mo_gym

    make = [lambda: mo_gym.make("deep-sea-treasure-v0")] * 3
    return mo_gym.wrappers.vector.MOSyncVectorEnv(make)
