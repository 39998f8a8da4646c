"""The presented space contains what is presented, whatever SB3's wrappers declare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import sb3compat
from sb3compat._convert.observations import Observations
from sb3compat._to_gymnasium.presented import presented_space
from sb3compat.errors import CallOrderError
from tests.envs import MakeEnv, script
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import dummy
from tests.vec_wrappers import HandsOn

sb3: Any = pytest.importorskip("stable_baselines3.common.vec_env")

BOX = spaces.Box(np.array([0, -5], np.float32), np.array([1, 900], np.float32))
WIDE = spaces.Box(-20, 20, (2,))
DOUBLE = spaces.Box(3.0, 4.0, (2,), np.float64)
SMALL = spaces.Box(0, 9, (2, 2), np.int16)
IMAGE = spaces.Box(0, 255, (36, 36, 3), np.uint8)
DICT = spaces.Dict({"vector": DOUBLE, "image": IMAGE, "count": spaces.Discrete(4)})
BOXES = spaces.Dict({"vector": DOUBLE, "image": IMAGE})

Wrap = Callable[[Any], Any]
normalize = partial(partial, sb3.VecNormalize)
stack = partial(partial, sb3.VecFrameStack)


class Logging(sb3.VecNormalize):
    """A subclass that normalizes as SB3 does."""

    def step_wait(self) -> Any:
        return super().step_wait()


CASES: dict[str, tuple[Any, list[Wrap]]] = {
    "normalized doubles": (DOUBLE, [normalize()]),
    "normalized integers": (SMALL, [normalize(clip_obs=2)]),
    "normalized image": (IMAGE, [normalize()]),
    "no range": (DOUBLE, [normalize(clip_obs=np.inf)]),
    "rewards only": (BOX, [normalize(norm_obs=False)]),
    "all keys": (BOXES, [normalize()]),
    "one key": (DICT, [normalize(norm_obs_keys=["vector"], clip_obs=1.0)]),
    "a subclass": (BOX, [Logging]),
    "normalized twice": (BOX, [normalize(clip_obs=1), normalize(clip_obs=3)]),
    "a wrapper without a space": (BOX, [normalize(), HandsOn, sb3.VecMonitor, sb3.VecCheckNan]),
    "a wrapper with a space": (BOX, [normalize(), partial(HandsOn, observation_space=WIDE)]),
    "stacked above zero": (DOUBLE, [stack(n_stack=2)]),
    "one frame": (DOUBLE, [stack(n_stack=1)]),
    "stacked integers": (SMALL, [stack(n_stack=2, channels_order="first")]),
    "stacked image": (IMAGE, [stack(n_stack=2)]),
    "stacked dict": (BOXES, [stack(n_stack=2)]),
    "normalized and stacked": (BOX, [normalize(clip_obs=1), stack(n_stack=2)]),
    "normalized doubles, stacked": (DOUBLE, [normalize(clip_obs=1), stack(n_stack=2)]),
    "normalized dict, stacked": (BOXES, [normalize(norm_obs_keys=["vector"]), stack(n_stack=2)]),
    "transposed": (IMAGE, [sb3.VecTransposeImage]),
    "transposed and stacked": (IMAGE, [sb3.VecTransposeImage, stack(n_stack=2)]),
    "not transposed": (IMAGE, [partial(sb3.VecTransposeImage, skip=True)]),
    "transposed dict": (DICT, [normalize(norm_obs_keys=["vector"]), sb3.VecTransposeImage]),
    "extracted": (DICT, [partial(sb3.VecExtractDictObs, key="image"), sb3.VecTransposeImage]),
    "normalized and extracted": (
        DICT,
        [normalize(norm_obs_keys=["vector"]), partial(sb3.VecExtractDictObs, key="vector")],
    ),
}


def made(name: str) -> Any:
    space, wraps = CASES[name]
    chosen = script(observation_space=space, lengths=(2, 3, 4))
    env = dummy([MakeEnv(chosen, i) for i in range(2)])
    for wrap in wraps:
        env = wrap(env)
    return env


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("name", CASES)
def test_presented_space_contains_what_is_presented(name: str, mode: str) -> None:
    envs: Any = sb3compat.to_gymnasium(made(name), autoreset_mode=mode)
    single = envs.single_observation_space
    observations = envs.reset(seed=3)[0]
    assert observations in envs.observation_space
    for _ in range(20):
        observations, _, terminations, truncations, infos = envs.step(np.zeros(2, np.int64))
        assert observations in envs.observation_space, (observations, envs.observation_space)
        if mode == "Disabled":
            ended = terminations | truncations
            if ended.any():
                envs.reset(options={"reset_mask": ended})
        elif "final_obs" in infos:
            layout = Observations(single, 2, from_zero=False)
            for final in infos["final_obs"][infos["_final_obs"]]:
                assert layout.pack(layout.cast(final, "the test")) in single


PRESENTED: dict[str, Any] = {
    "normalized doubles": spaces.Box(-10, 10, (2,), np.float32),
    "normalized integers": spaces.Box(-2, 2, (2, 2), np.float32),
    "rewards only": BOX,
    "one key": spaces.Dict(
        {"vector": spaces.Box(-1, 1, (2,)), "image": IMAGE, "count": spaces.Discrete(4)}
    ),
    "stacked above zero": spaces.Box(np.array([0.0, 0, 3, 3]), np.full(4, 4.0), dtype=np.float64),
    "normalized twice": spaces.Box(-3, 3, (2,), np.float32),
    "a wrapper with a space": WIDE,
}


@pytest.mark.parametrize("name", PRESENTED)
def test_presented_space_is_the_range_that_there_is(name: str) -> None:
    assert presented_space(made(name)) == PRESENTED[name]


@pytest.mark.parametrize("name", ["rewards only", "stacked image", "transposed", "not transposed"])
def test_space_that_is_right_is_presented_as_it_is(name: str) -> None:
    env = made(name)
    assert presented_space(env) is env.observation_space


@pytest.mark.parametrize("name", ["normalize_obs", "_normalize_obs"])
def test_subclass_that_transforms_otherwise_is_believed(name: str) -> None:
    cls = type("Own", (sb3.VecNormalize,), {name: lambda self, obs, *statistics: obs})
    env = cls(dummy([MakeEnv(script(observation_space=DOUBLE), 0)]))
    assert presented_space(env) is env.observation_space
    envs = sb3compat.to_gymnasium(env)
    assert envs.reset()[0].dtype == np.float64


def test_replaced_method_of_a_wrapper_is_not_known() -> None:
    venv = sb3.VecNormalize(dummy([MakeEnv(script(observation_space=BOX), 0)]))
    venv.normalize_obs = lambda obs: obs + 99
    assert presented_space(venv) == venv.observation_space


def test_settings_that_change_what_is_presented_are_noticed_at_a_reset() -> None:
    venv = sb3.VecNormalize(dummy([MakeEnv(script(observation_space=DOUBLE), 0)]))
    envs = sb3compat.to_gymnasium(venv)
    venv.training = venv.norm_reward = False  # for an evaluation
    envs.reset()
    venv.norm_obs = False
    with pytest.raises(CallOrderError, match="Adapt it again"):
        envs.reset()
    venv.norm_obs = True
    envs.step(envs.action_space.sample())  # nothing was reset


class AroundASimulator(CountingVecEnv):
    """Keeps its simulator under the name that SB3's wrappers have for the `VecEnv` inside."""

    venv = object()


def test_simulator_of_a_vec_env_is_none() -> None:
    env = AroundASimulator()
    assert presented_space(env) is env.observation_space
    envs = sb3compat.to_gymnasium(env)
    envs.reset()
    assert envs.step(np.zeros(2, int))[0].tolist() == [[1], [1]]
