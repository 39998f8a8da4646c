"""The examples of the guide of SB3, with an adapted environment in the place of SB3's own.

Where the environments of the guide need packages of their own, others of the same kind take their
place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

import sb3compat
from tests.lockstep import same
from tests.to_sb3.sb3.training import weights

pytest.importorskip("stable_baselines3", reason="is about the guide of stable-baselines3")

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv

# How long an episode lasts at most. Short, so that training sees many endings.
LIMIT = 15
# The helper of SB3 and ours; each takes the arguments of SB3's.
HELPERS: dict[str, Callable[..., VecEnv]] = {
    "reference": make_vec_env,
    "sync": partial(sb3compat.make_vec_env, vectorization_mode="sync"),
    "async": partial(sb3compat.make_vec_env, vectorization_mode="async"),
}
NATIVE: dict[str, Any] = {}
KINDS: dict[str, dict[str, Any]] = {
    f"{name}-{mode.name}": {"vectorization_mode": name, "vector_kwargs": {"autoreset_mode": mode}}
    for name in ("sync", "async")
    for mode in AutoresetMode
} | {"native": NATIVE}


def changed(model: Any, steps: int, **kwargs: Any) -> dict[str, Any]:
    """The weights after training; the training must have changed them."""
    before = weights(model)
    model.learn(steps, **kwargs)
    after = weights(model)
    assert any((before[name] != after[name]).any() for name in before)
    return after


def check_helpers(run: Callable[[VecEnv], Any], env_id: Any, n_envs: int, **kwargs: Any) -> Any:
    """Run the same on the environment of each helper, compare, and return the result."""
    results: dict[str, Any] = {}
    for name, helper in HELPERS.items():
        env = helper(env_id, n_envs, seed=0, **kwargs)
        try:
            results[name] = run(env)
        finally:
            env.close()
        same(results[name], results["reference"], name)
    return results["reference"]


def play(model: Any, env: Any, steps: int = 40) -> list[Any]:
    """The loop in which a trained agent is watched; seconds are left out."""
    obs = env.reset()
    record = [obs]
    for _ in range(steps):
        actions, _ = model.predict(obs, deterministic=True)
        obs, rewards, dones, infos = env.step(actions)
        infos = [{k: v for k, v in info.items() if k != "episode"} for info in infos]
        record.append((obs, rewards, dones, infos))
    return record
