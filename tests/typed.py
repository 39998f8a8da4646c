"""The types of the public functions, as mypy (`make lint`) and pyright (`make nightly`) infer them.

Nothing here runs.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv
from typing_extensions import assert_type

import sb3compat
from sb3compat.conformance import Report, check_vec_env, check_vector_env

Flags = npt.NDArray[np.bool_]


def to_sb3(env: VectorEnv[Any, Any, Any], vec_env: VecEnv) -> None:
    assert_type(sb3compat.to_sb3(env), VecEnv)
    assert_type(sb3compat.to_sb3(vec_env), VecEnv)
    assert_type(sb3compat.to_sb3(env, autoreset_mode="SameStep", timeout=1.5), VecEnv)
    assert_type(sb3compat.to_sb3(env, autoreset_mode=AutoresetMode.DISABLED), VecEnv)
    adapter = sb3compat.VecEnvAdapter(env, copy=False)
    assert_type(adapter.env, VectorEnv[Any, Any, Any])
    assert_type(adapter.autoreset_mode, AutoresetMode)
    assert_type(
        adapter.step_wait(),
        tuple[Any, npt.NDArray[np.float32], Flags, list[dict[str, Any]]],
    )
    assert_type(adapter.get_attr("spec", indices=[0, -1]), list[Any])
    assert_type(adapter.env_is_wrapped(gym.Wrapper), list[bool])


def to_gymnasium(vec_env: DummyVecEnv, envs: SyncVectorEnv[Any, Any]) -> None:
    assert_type(sb3compat.to_gymnasium(vec_env), VectorEnv[Any, Any, Any])
    assert_type(sb3compat.to_gymnasium(envs), VectorEnv[Any, Any, Any])
    adapter = sb3compat.VectorEnvAdapter(vec_env, autoreset_mode="NextStep")
    assert_type(adapter.reset(seed=[1, None], options={"x": 1}), tuple[Any, dict[str, Any]])
    assert_type(
        adapter.step([0, 1]),
        tuple[Any, npt.NDArray[np.float64], Flags, Flags, dict[str, Any]],
    )
    assert_type(adapter.call("render"), tuple[Any, ...])


def make_vec_env() -> None:
    assert_type(sb3compat.make_vec_env("CartPole-v1", 4, seed=0), VecEnv)
    assert_type(sb3compat.make_vec_env("CartPole-v1", vec_env_cls=DummyVecEnv), VecEnv)
    assert_type(
        sb3compat.make_vec_env(
            gym.spec("CartPole-v1"),
            vectorization_mode="async",
            autoreset_mode="SameStep",
            timeout=3,
        ),
        VecEnv,
    )


def reset_with_mask(env: VectorEnv[Any, Any, Any], mask: Flags) -> None:
    assert_type(sb3compat.reset_with_mask(env, mask), tuple[Any, dict[str, Any]])


class Custom(VectorEnv[Any, Any, Any]):
    pass


@sb3compat.register_partial_reset(Custom)
def reset_some(
    env: Any, mask: Flags, *, seed: Any = None, options: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    result: tuple[Any, dict[str, Any]] = env.reset(seed=seed, options={"rows": mask})
    return result


def conformance() -> None:
    assert_type(check_vec_env(lambda: DummyVecEnv([]), on_fail=None), Report)
    assert_type(check_vector_env(lambda: SyncVectorEnv([]), seed=3), Report)
    assert_type(check_vec_env(lambda: None).ok, bool)


def what_is_refused(env: gym.Env[Any, Any]) -> None:
    # Each comment is an error in itself where the type checker finds nothing wrong.
    sb3compat.to_sb3(3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    sb3compat.to_sb3(env)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    sb3compat.to_gymnasium("CartPole-v1")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    sb3compat.make_vec_env(env)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    sb3compat.make_vec_env("CartPole-v1", num_envs=4)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
