"""A `VecEnv` as a part of a worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._parallel.parts import layouts
from sb3compat._parallel.vec_env_part import VecEnvSource
from tests.envs import fns

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper, VecMonitor, VecNormalize

from tests.parallel.teams import forked


class Without(VecEnvWrapper):
    """Leaves a key out of the infos."""

    def __init__(self, venv: Any, key: str) -> None:
        super().__init__(venv)
        self.key = key

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            info.pop(self.key, None)
        return obs, rewards, dones, infos


def source_over(vec_env: Any) -> VecEnvSource:
    spaces = vec_env.observation_space, vec_env.action_space
    return VecEnvSource(vec_env, *layouts(spaces, vec_env.num_envs))


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("terminal_observation", sb3compat.MissingFinalObservationError),
        ("TimeLimit.truncated", sb3compat.MissingTruncationError),
    ],
)
def test_ending_that_is_not_told_in_full_is_refused(key: str, error: type[Exception]) -> None:
    env = forked([lambda: Without(DummyVecEnv(fns(2, lengths=(1,))), key)])
    env.reset()
    with pytest.raises(error, match=key):
        env.step(np.zeros(2, int))
    env.close()


def test_wrapped_vec_env_gives_what_it_gives_by_itself() -> None:
    def make() -> Any:
        return VecNormalize(VecMonitor(DummyVecEnv(fns(3))))

    ours, alone = forked([make]), make()
    for env in (ours, alone):
        env.seed(3)
    np.testing.assert_array_equal(ours.reset(), alone.reset())
    assert ours.reset_infos == alone.unwrapped.reset_infos
    for _ in range(5):
        got, expected = (env.step(np.ones(3, int)) for env in (ours, alone))
        for one, two in zip(got[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(one, two)
        assert [info.keys() for info in got[3]] == [info.keys() for info in expected[3]]
    ours.close()


def test_cancelled_step_is_taken() -> None:
    vec_env = DummyVecEnv(fns(2))
    source = source_over(vec_env)
    source.reset([None, None], [{}, {}])
    source.cancel()
    source.send([np.zeros(2, int)])
    source.cancel()
    assert vec_env.envs[0]._time == 1
