"""What Gymnasium's vector wrappers keep for themselves."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

from sb3compat._upstream import vector_wrappers as upstream
from tests.envs import GYMNASIUM, Identity, fns


def transformed() -> Any:
    env = SyncVectorEnv(fns())
    single: Any = gym.wrappers.TransformObservation
    return wrappers.VectorizeTransformObservation(
        env, single, func=lambda obs: obs, observation_space=env.single_observation_space
    )


class Remembering(Identity):
    """A user's wrapper that remembers the mode as Gymnasium's do."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._autoreset_mode = env.metadata["autoreset_mode"]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: wrappers.RecordEpisodeStatistics(SyncVectorEnv(fns())), "_autoreset_mode"),
        (transformed, "autoreset_mode"),
        (lambda: Remembering(SyncVectorEnv(fns())), "_autoreset_mode"),
        (lambda: Identity(SyncVectorEnv(fns())), ""),
        pytest.param(
            lambda: wrappers.NormalizeReward(SyncVectorEnv(fns())),
            "_autoreset_mode",
            marks=pytest.mark.skipif(GYMNASIUM < (1, 4), reason="has it since 1.4"),
        ),
    ],
)
def test_mode_that_a_wrapper_remembers(make: Any, name: str) -> None:
    expected = (name, AutoresetMode.NEXT_STEP) if name else ("", None)
    assert upstream.believed_mode(make()) == expected


def test_converters_are_known_by_the_name_of_a_class_above_them() -> None:
    converter = type("NumpyToTorch", (Identity,), {"__module__": f"{wrappers.__name__}.anything"})
    derived: Any = type("Derived", (converter,), {})
    elsewhere = type("NumpyToTorch", (Identity,), {})
    env = SyncVectorEnv(fns())
    assert upstream.converter_class(derived(env)) is converter
    assert upstream.converter_class(elsewhere(env)) is None
    assert upstream.is_gymnasiums(wrappers.NormalizeReward.step)
    assert not upstream.is_gymnasiums(Remembering.__init__)
