"""Keys that say how an episode ended may be keys of sub-environments, or are refused."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import Identity, fns, script
from tests.lockstep import lockstep
from tests.to_sb3.driving import SAME_STEP, class_of, made, mode_of, step


class Finals(gym.Wrapper[Any, Any, Any, Any]):
    """Gives, in each step, infos under the keys that SAME_STEP environments use.

    And in each reset under the one that only other environments than Gymnasium's use.
    """

    def reset(self, **kwargs: Any) -> Any:
        obs, info = self.env.reset(**kwargs)
        return obs, {**info, "final_observation": "text"}

    def step(self, action: Any) -> Any:
        *result, info = self.env.step(action)
        own = {"final_obs": np.arange(3.0), "final_info": {"x": 1}, "final_observation": "text"}
        return *result, {**info, **own}


def bare(cls: Any, fns: Any, mode: AutoresetMode) -> Any:
    return cls(fns, autoreset_mode=mode)


def wrapped(cls: Any, fns: Any, mode: AutoresetMode) -> Any:
    return Identity(cls(fns, autoreset_mode=mode))


def adapted(cls: Any, fns: Any, mode: AutoresetMode) -> Any:
    """As `wrapped`, by SB3's class and our own adapter."""
    from stable_baselines3.common import vec_env

    theirs = vec_env.DummyVecEnv if cls is SyncVectorEnv else vec_env.SubprocVecEnv
    kwargs = {} if cls is SyncVectorEnv else {"start_method": "fork"}
    return Identity(sb3compat.to_gymnasium(theirs(fns, **kwargs), autoreset_mode=mode))


@mode_of
@class_of
@pytest.mark.parametrize("make", [bare, wrapped, adapted])
def test_keys_of_endings_may_be_keys_of_sub_environments(
    make: Any, cls: Any, mode: AutoresetMode
) -> None:
    pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

    def build(fns: Any) -> Any:
        return make(cls, [lambda fn=fn: Finals(fn()) for fn in fns], mode)

    program: list[Any] = [("reset", None), *[("step", number) for number in range(6)]]
    # In SAME_STEP mode under a wrapper, Gymnasium itself would write one `final_info` over another.
    lengths = (9,) if mode == SAME_STEP and make is wrapped else (2, 3)
    lockstep(script(lengths=lengths, infos="none"), 2, build, program, wrap=Finals)


class Gives(gym.Wrapper[Any, Any, Any, Any]):
    """Gives an info of its own in each step of an episode but the last, or in each reset."""

    def __init__(self, env: Any, info: dict[str, Any], *, when: str) -> None:
        super().__init__(env)
        self.info, self.when = info, when

    def reset(self, **kwargs: Any) -> Any:
        obs, info = self.env.reset(**kwargs)
        return obs, {**info, **(self.info if self.when == "reset" else {})}

    def step(self, action: Any) -> Any:
        *result, info = self.env.step(action)
        ended = result[2] or result[3]
        return *result, {**info, **({} if ended or self.when == "reset" else self.info)}


@pytest.mark.parametrize("make", [wrapped, adapted])
def test_names_of_masks_may_be_keys_of_sub_environments(make: Any) -> None:
    pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")

    def wrap(env: Any) -> Any:
        return Gives(env, {"_final_obs": 3, "_final_info": "text"}, when="step")

    def build(fns: Any) -> Any:
        return make(SyncVectorEnv, [lambda fn=fn: wrap(fn()) for fn in fns], SAME_STEP)

    program: list[Any] = [("reset", None), *[("step", number) for number in range(3)]]
    lockstep(script(lengths=(9,), infos="none"), 2, build, program, wrap=wrap)


@pytest.mark.parametrize(
    ("info", "when"),
    [
        ({"_final_obs": 4}, "step"),
        ({"_final_obs": True}, "step"),
        ({"_final_info": "text"}, "step"),
        ({"_final_obs": False}, "reset"),
        ({"_final_info": 3}, "reset"),
        ({"final_info": 3}, "step"),
    ],
)
def test_what_gymnasium_mixes_with_an_ending_is_refused(info: dict[str, Any], when: str) -> None:
    factories = [lambda fn=fn: Gives(fn(), info, when=when) for fn in fns(3, lengths=(9, 2, 9))]
    env = sb3compat.to_sb3(made("sync wrapped", factories, SAME_STEP))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="a sub-environment returns"):
        list(map(step, [env] * 9))


@pytest.mark.parametrize("name", ["sync wrapped", "async"])
@pytest.mark.parametrize("key", ["final_obs", "final_info"])
def test_reset_infos_with_final_keys_are_refused(key: str, name: str) -> None:
    factories = [lambda: Gives(fns()[0](), {key: 3}, when="reset")]
    env = sb3compat.to_sb3(made(name, factories, SAME_STEP))
    with pytest.raises(sb3compat.ConversionError, match=key):
        env.reset()
    env.close()
