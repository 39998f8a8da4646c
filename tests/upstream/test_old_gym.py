"""Environments of the old `gym` are converted where SB3 converts them."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any

import gymnasium
import pytest

import sb3compat
from sb3compat._upstream.vec_env import converted
from tests.envs import MakeEnv, ScriptedEnv, script
from tests.lockstep import same
from tests.make.test_make import stream
from tests.parallel.teams import forked

env_util: Any = pytest.importorskip("stable_baselines3.common.env_util")
vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")


STEPS = [False] * 3  # no reset but the first


class OldEnv:
    """An environment of a library that is not Gymnasium."""

    def __init__(self, row: int = 0) -> None:
        self.inside = ScriptedEnv(script(lengths=(2, 3)), row)

    @property
    def unwrapped(self) -> OldEnv:
        return self

    def reset(self, seed: int | None = None) -> Any:
        return self.inside.reset(seed=seed)


class Compatibility(gymnasium.Wrapper[Any, Any, Any, Any]):
    """What shimmy makes of it."""

    def __init__(self, env: OldEnv) -> None:
        super().__init__(env.inside)


@pytest.fixture(autouse=True)
def old_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    gym, shimmy = ModuleType("gym"), ModuleType("shimmy")
    gym.Env = OldEnv
    shimmy.GymV26CompatibilityV0 = Compatibility
    monkeypatch.setitem(sys.modules, "gym", gym)
    monkeypatch.setitem(sys.modules, "shimmy", shimmy)
    monkeypatch.setattr(vec_env.patch_gym, "gym", gym, raising=False)
    monkeypatch.setattr(vec_env.patch_gym, "gym_installed", True)


@pytest.mark.filterwarnings("ignore:You provided an OpenAI Gym environment")
@pytest.mark.parametrize("mode", ["sync", "async", "parallel"])
def test_make_vec_env_converts_as_sb3s(mode: str) -> None:
    kwargs = {} if mode == "sync" else {"start_method": "fork"}
    ours = sb3compat.make_vec_env(OldEnv, 2, seed=3, vectorization_mode=mode, vec_env_kwargs=kwargs)
    theirs = env_util.make_vec_env(OldEnv, 2, seed=3)
    same(stream(ours, STEPS), stream(theirs, STEPS))


@pytest.mark.filterwarnings("ignore:You provided an OpenAI Gym environment")
def test_rows_of_parallel_vec_env_are_converted_as_those_of_dummy_vec_env() -> None:
    functions = [partial(OldEnv, row) for row in range(2)]
    ours, theirs = forked(functions), vec_env.DummyVecEnv(functions)
    for env in (ours, theirs):
        env.seed(3)
    same(stream(ours, STEPS), stream(theirs, STEPS))


def test_other_things_are_left_alone() -> None:
    for value in (MakeEnv(script(), 0)(), None, 3, OldEnv):
        assert converted(value) is value
