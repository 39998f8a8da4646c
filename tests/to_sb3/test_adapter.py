"""`VecEnvAdapter`: the contract of SB3's `VecEnv`."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import MakeEnv, fns, script
from tests.lockstep import same
from tests.to_sb3.driving import SOURCES, Gives, class_of, made, mode_of, step


def adapted(n: int = 2, **kwargs: Any) -> Any:
    return sb3compat.to_sb3(SyncVectorEnv(fns(n, **kwargs)))


def test_adapter_is_a_vec_env() -> None:
    common = pytest.importorskip("stable_baselines3.common.vec_env")
    env = adapted(3)
    assert isinstance(env, common.VecEnv)
    assert isinstance(env, sb3compat.VecEnvAdapter)
    assert env.num_envs == 3
    assert env.unwrapped is env
    assert repr(env) == "<VecEnvAdapter, SyncVectorEnv(num_envs=3)>"
    assert env.render_mode == "rgb_array"
    assert env.metadata == {"render_modes": ["rgb_array"], "render_fps": 7}
    assert env.observation_space is env.env.single_observation_space
    assert env.action_space is env.env.single_action_space


@mode_of
@pytest.mark.parametrize("name", SOURCES)
def test_terminal_keys_of_sub_environments_are_dropped(name: str, mode: AutoresetMode) -> None:
    first, second = fns(lengths=(2,))
    lies = {"terminal_observation": "no", "TimeLimit.truncated": "no"}
    rows = [lambda: Gives(first(), step=lies, reset=lies), second]
    env = sb3compat.to_sb3(made(name, rows, mode))
    env.reset()
    for info in step(env)[3]:
        assert "terminal_observation" not in info
        assert info["TimeLimit.truncated"] is False
    for info in step(env)[3]:
        assert info["terminal_observation"].shape == (3,)
        assert info["TimeLimit.truncated"] is False


@class_of
def test_rows_with_different_starts_are_refused(cls: Any) -> None:
    env_fns = [
        MakeEnv(script(observation_space=spaces.Discrete(5, start=start)), row)
        for row, start in enumerate([0, -3])
    ]
    both = spaces.MultiDiscrete([5, 5], start=[0, -3])
    source = cls(env_fns, observation_mode=(both, spaces.Discrete(5)))
    with pytest.raises(sb3compat.UnsupportedSpaceError, match=r"\[0\], got \[-3\] in row 1"):
        sb3compat.to_sb3(source)
    source.close()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_environment_in_this_process_can_be_copied(duplicate: Any) -> None:
    env = adapted()
    env.reset()
    other = duplicate(env)
    same(step(other), step(env))
    same(other.reset(), env.reset())
