"""Which source drives which `VecEnv`, and what is read from it and its sub-environments."""

from __future__ import annotations

import gc
from copy import deepcopy
from functools import partial
from threading import Lock
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import MakeEnv, ScriptedEnv, fns, overriding, script
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import NAMES, SOURCES, dummy
from tests.parallel.teams import forked
from tests.vec_wrappers import HandsOn

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")

SAME_STEP, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_metadata_are_not_shared(build: Any) -> None:
    first = sb3compat.to_gymnasium(build(fns()))
    second = sb3compat.to_gymnasium(build(fns()), autoreset_mode=DISABLED)
    before = deepcopy(ScriptedEnv.metadata)  # older Gymnasium writes a mode into it
    assert first.metadata == {**before, "autoreset_mode": SAME_STEP}
    assert second.metadata == {**before, "autoreset_mode": DISABLED}
    first.metadata["render_modes"].append("human")
    assert ScriptedEnv.metadata == before
    assert before["render_fps"] == 7


def test_metadata_may_hold_what_cannot_be_copied() -> None:
    class Locked(ScriptedEnv):
        metadata: Any = {"render_modes": [], "lock": Lock()}

    metadata = sb3compat.to_gymnasium(dummy([lambda: Locked(script())])).metadata
    assert metadata["lock"] is Locked.metadata["lock"]
    assert metadata["render_modes"] is not Locked.metadata["render_modes"]


def test_close_closes_the_vec_env_and_garbage_collection_does_not() -> None:
    vec_env = CountingVecEnv()
    ours: Any = sb3compat.to_gymnasium(vec_env)
    del ours
    gc.collect()
    assert not vec_env.closed
    sb3compat.to_gymnasium(vec_env).close()
    assert vec_env.closed


def test_spec_is_that_of_the_vec_env_or_the_one_that_all_sub_environments_share() -> None:
    cartpole, longer = (partial(gym.make, "CartPole-v1", max_episode_steps=n) for n in (5, 6))
    for made, own, expected in (
        ([cartpole] * 2, None, "CartPole-v1"),
        ([cartpole, longer], None, None),
        ([cartpole] * 2, gym.spec("Acrobot-v1"), "Acrobot-v1"),
    ):
        vec_env = dummy(made)
        vec_env.spec = own
        spec = sb3compat.to_gymnasium(vec_env).spec
        assert (spec and spec.id) == expected


def test_metadata_of_a_vec_env_without_sub_environments_are_its_own() -> None:
    env: Any = CountingVecEnv()
    assert sb3compat.to_gymnasium(env).metadata == {"autoreset_mode": SAME_STEP}
    env.metadata = {"render_modes": ["human"]}
    copied = sb3compat.to_gymnasium(env).metadata
    assert copied == {**env.metadata, "autoreset_mode": SAME_STEP}
    assert copied["render_modes"] is not env.metadata["render_modes"]


OTHER = gym.spaces.Box(0, 1, (3,))


@pytest.mark.parametrize("space", ["observation_space", "action_space"])
@pytest.mark.parametrize("build", SOURCES, ids=NAMES)
def test_rows_with_unlike_spaces_are_refused_as_by_sync_vector_env(build: Any, space: Any) -> None:
    rows = [MakeEnv(script(), 0), MakeEnv(script(**{space: OTHER}), 1)]
    # Up to Gymnasium 1.2, an AssertionError.
    with pytest.raises((RuntimeError, AssertionError)):
        gym.vector.SyncVectorEnv(rows)
    made = build(rows)
    with pytest.raises(RuntimeError, match=rf"the {space} of the first one, .* in row 1") as ours:
        sb3compat.to_gymnasium(made)
    assert isinstance(ours.value, sb3compat.UnsupportedSpaceError)


def test_wrapper_with_a_space_of_its_own_may_unite_rows() -> None:
    def united(**spaces: Any) -> Any:
        rows = [MakeEnv(script(), 0), MakeEnv(script(**spaces), 1)]
        vec_env = HandsOn(dummy(rows), observation_space=gym.spaces.Box(-1, 1, (3,)))
        return sb3compat.to_gymnasium(vec_env)

    envs = united(observation_space=OTHER)
    assert envs.reset()[0] in envs.observation_space
    with pytest.raises(sb3compat.UnsupportedSpaceError, match=r"the action_space .* in row 1"):
        united(observation_space=OTHER, action_space=OTHER)


@pytest.mark.parametrize("space", ["observation_space", "action_space"])
@pytest.mark.parametrize("wrap", [lambda env: env, vec_env.VecMonitor], ids=["bare", "wrapped"])
def test_subclass_may_have_a_space_of_its_own(wrap: Any, space: str) -> None:
    own: Any = type("Own", (vec_env.DummyVecEnv,), {})
    env = own([MakeEnv(script(), 0), MakeEnv(script(**{space: OTHER}), 1)])
    with pytest.raises(sb3compat.UnsupportedSpaceError, match="in row 1"):
        sb3compat.to_gymnasium(wrap(env))
    setattr(env, space, gym.spaces.Discrete(7))
    envs = sb3compat.to_gymnasium(wrap(env))
    assert getattr(envs, f"single_{space}") == gym.spaces.Discrete(7)


def adapter(envs: Any) -> Any:
    return sb3compat.to_sb3(SyncVectorEnv(envs, autoreset_mode=SAME_STEP))


METHODS = ("step", "step_async", "step_wait", "reset", "seed", "set_options")
METHODS += ("get_attr", "set_attr", "env_method", "close")
OVERRIDDEN = [(dummy, name) for name in (*METHODS, "_save_obs", "_obs_from_buf")]
OVERRIDDEN += [(build, name) for build in (forked, adapter) for name in METHODS]


@pytest.mark.parametrize("on_instance", [True, False])
@pytest.mark.parametrize(("build", "name"), OVERRIDDEN)
def test_overridden_methods_of_a_vec_env_are_called(
    build: Any, name: str, on_instance: bool
) -> None:
    vec_env = build(fns(lengths=(2, 3)))
    calls = overriding(vec_env, name, on_instance)
    with pytest.raises(sb3compat.AutoresetModeError, match="NextStep"):
        sb3compat.to_gymnasium(vec_env, autoreset_mode="NextStep")
    env: Any = sb3compat.to_gymnasium(vec_env)
    calls.clear()
    env.reset(seed=3, options={"x": 1})
    for _ in range(4):
        env.step(np.zeros(2, int))
    assert env.get_attr("row") == (0, 1)
    assert env.call("set_mu", 1.0) == (1.0, 2.0)
    env.set_attr("mu", 3.0)
    env.close()
    assert calls


def test_space_that_vec_normalize_has_written_into_is_no_unlike_one() -> None:
    image = gym.spaces.Dict({"image": gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)})
    env = vec_env.VecNormalize(dummy(fns(observation_space=image)))
    envs = sb3compat.to_gymnasium(env)
    assert envs.reset()[0] in envs.observation_space
