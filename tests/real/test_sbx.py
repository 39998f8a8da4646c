"""SBX, SB3's algorithms in JAX, trains on an adapted vector environment: the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.real.environments import makers, same_results, sb3_envs

sbx = pytest.importorskip("sbx", reason="needs sbx-rl")
jax = pytest.importorskip("jax")

ALGORITHMS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "PPO": (sbx.PPO, "CartPole-v1", {"n_steps": 32, "batch_size": 32}),
    "DQN": (sbx.DQN, "CartPole-v1", {"learning_starts": 40, "batch_size": 16}),
    "SAC": (sbx.SAC, "Pendulum-v1", {"learning_starts": 40, "batch_size": 16}),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_weights_are_the_same(name: str) -> None:
    cls, env_id, kwargs = ALGORITHMS[name]

    def train(env: Any) -> Any:
        model = cls("MlpPolicy", env, seed=3, **kwargs).learn(200)
        states = [getattr(model.policy, part, None) for part in ("actor_state", "qf_state")]
        leaves = jax.tree.leaves([state.params for state in states if state is not None])
        return [np.asarray(leaf) for leaf in leaves]

    assert same_results(sb3_envs(makers(env_id, 2)), train)
