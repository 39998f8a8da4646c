"""Vector environments of other libraries, made for the tests."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode

from tests.closing import closed_later

FRAMESKIP = 4


def atari(
    mode: AutoresetMode, num_envs: int = 3, limit: int = 211, game: str = "asterix", **kwargs: Any
) -> Any:
    """In Asterix, at random, a life lasts so long that some episodes end before the limit."""
    pytest.importorskip("ale_py", reason="drives ale-py's AtariVectorEnv")
    from ale_py.vector_env import AtariVectorEnv

    return closed_later(
        AtariVectorEnv(
            game,
            num_envs=num_envs,
            autoreset_mode=mode,
            max_num_frames_per_episode=limit * FRAMESKIP,
            img_height=20,
            img_width=20,
            **kwargs,
        )
    )


def made_atari(mode: AutoresetMode, **kwargs: Any) -> Any:
    """Two rows of Breakout, by `gymnasium.make_vec`."""
    gym.register_envs(pytest.importorskip("ale_py", reason="drives ale-py's AtariVectorEnv"))
    how = {"vectorization_mode": "vector_entry_point", "autoreset_mode": mode}
    return closed_later(gym.make_vec("ALE/Breakout-v5", 2, **how, **kwargs))


def pool(
    num_envs: int, limit: int = 500, seed: int = 1, task: str = "CartPole-v1", **kwargs: Any
) -> Any:
    envpool = pytest.importorskip("envpool", reason="drives EnvPool")
    return closed_later(
        envpool.make(
            task,
            env_type="gymnasium",
            num_envs=num_envs,
            max_episode_steps=limit,
            seed=seed,
            **kwargs,
        )
    )


def lives_pool(num_envs: int) -> Any:
    """Breakout, whose episodes end with a life."""
    small = {"img_height": 20, "img_width": 20, "stack_num": 1}
    return pool(num_envs, 27000, task="Breakout-v5", episodic_life=True, **small)


def jax_env(name: str, num_envs: int, limit: int) -> Any:
    pytest.importorskip("jax", reason="drives Gymnasium's JAX environments")
    pytest.importorskip("flax", reason="Gymnasium's JAX environments are made with flax")
    return gym.make_vec(
        f"phys2d/{name}",
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        max_episode_steps=limit,
    )
