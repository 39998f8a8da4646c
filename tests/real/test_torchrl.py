"""TorchRL's `GymWrapper` around a vector environment: the same rollouts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.environments import makers, same_results, vector_envs

pytest.importorskip("torchrl", reason="needs torchrl")

from torchrl.envs import GymWrapper


@pytest.mark.parametrize(("env_id", "n"), [("CartPole-v1", 3), ("Pendulum-v1", 2)])
def test_rollouts_are_the_same(env_id: str, n: int) -> None:
    def rollout(envs: Any) -> Any:
        env = GymWrapper(envs)
        env.set_seed(3)
        data = env.rollout(80, break_when_any_done=False)
        assert data.batch_size == (n, 80)
        return dict(data.flatten_keys(".").items())

    # TorchRL refuses NEXT_STEP environments.
    data = same_results(vector_envs(makers(env_id, n)), rollout)
    assert data["next.truncated"].any()
    assert data["next.done"].sum() >= 2 * n
