"""`VectorEnvAdapter`: the contract of Gymnasium's `VectorEnv`."""

from __future__ import annotations

from threading import Lock
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from tests.envs import ScriptedEnv, fns, script
from tests.lockstep import same
from tests.lockstep_back import dummy

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import VecMonitor

SAME_STEP, NEXT_STEP = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP


def adapted(n: int = 2, mode: Any = SAME_STEP, **kwargs: Any) -> Any:
    return sb3compat.to_gymnasium(dummy(fns(n, **kwargs)), autoreset_mode=mode)


def test_vector_env_is_returned_as_it_is() -> None:
    env = SyncVectorEnv(fns())
    assert sb3compat.to_gymnasium(env) is env
    ours = adapted()
    assert sb3compat.to_gymnasium(ours) is ours
    assert sb3compat.to_gymnasium(env, autoreset_mode="NextStep") is env
    # Up to Gymnasium 1.3, environments write into the metadata of their base class.
    own = {"num_envs": 2, "unwrapped": object(), "metadata": {}}
    around: Any = type("Around", (VectorEnv,), own)()
    assert sb3compat.to_gymnasium(around) is around
    with pytest.raises(sb3compat.AutoresetModeError, match="autoreset_mode=None, as"):
        sb3compat.to_gymnasium(around, autoreset_mode="NextStep")
    assert sb3compat.to_gymnasium(ours, autoreset_mode=ours.autoreset_mode) is ours


def test_base_class_is_gymnasiums_for_those_who_look_at_it() -> None:
    """`skrl.envs.wrappers.torch.wrap_env` finds its wrapper by the direct base classes."""
    assert VectorEnv in type(sb3compat.to_gymnasium(dummy(fns()))).__bases__


@pytest.mark.parametrize("mode", AutoresetMode)
def test_mask_of_all_rows_is_a_reset_of_all_rows(mode: AutoresetMode) -> None:
    every = {"reset_mask": np.ones(2, np.bool_)}
    ours, theirs = adapted(mode=mode), SyncVectorEnv(fns(), autoreset_mode=mode)
    same(ours.reset(seed=3, options={**every}), theirs.reset(seed=3, options={**every}))
    # Another one has used the VecEnv, so that a part of the rows cannot be reset.
    ours.vec_env.step(np.zeros(2, np.int64))
    same(ours.reset(options={**every}), theirs.reset(options={**every}))


def test_refused_round_trip_changes_nothing() -> None:
    ours = adapted(mode="Disabled", lengths=(1, 9))
    ours.reset()
    ours.step([0, 0])
    with pytest.raises(ValueError, match="Expected no timeout"):
        sb3compat.to_sb3(ours, timeout=5)
    infos = ours.reset(options={"reset_mask": np.array([True, False])})[1]
    assert infos["resets"].tolist() == [2, 0]


def test_attributes_equal_those_of_sync_vector_env() -> None:
    vec_env = dummy([lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 3)
    ours: Any = sb3compat.to_gymnasium(vec_env, autoreset_mode="NextStep")
    theirs = SyncVectorEnv(
        [lambda: gym.make("CartPole-v1", render_mode="rgb_array")] * 3, autoreset_mode=NEXT_STEP
    )
    assert isinstance(ours, sb3compat.VectorEnvAdapter)
    assert isinstance(ours, VectorEnv)
    for name in (
        "num_envs", "single_observation_space", "single_action_space", "observation_space",
        "action_space", "metadata", "render_mode", "autoreset_mode", "closed",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.vec_env is vec_env
    assert ours.unwrapped is ours
    assert ours.spec.id == "CartPole-v1"
    assert repr(ours) == "VectorEnvAdapter(CartPole-v1, num_envs=3)"
    assert repr(adapted()) == "VectorEnvAdapter(num_envs=2)"


def test_frames_do_not_change_later() -> None:
    canvas = np.zeros((2, 2, 3), np.uint8)
    painting = ScriptedEnv(script())
    painting.render = lambda: np.add(canvas, 1, out=canvas)  # type: ignore[method-assign]
    for wrap in (lambda made: made, VecMonitor):
        envs = sb3compat.to_gymnasium(wrap(dummy([lambda: painting])))
        envs.reset()
        first, second = envs.render()[0], envs.render()[0]
        assert (first + 1).tolist() == second.tolist()


def test_frame_that_cannot_be_copied_is_returned_as_it_is() -> None:
    lock = Lock()
    holding = ScriptedEnv(script())
    holding.render = lambda: lock  # type: ignore[method-assign]
    envs = sb3compat.to_gymnasium(dummy([lambda: holding]))
    envs.reset()
    assert envs.render() == (lock,)


def test_closed_environment_refuses_every_call(envs: Any) -> None:
    envs.reset()
    envs.close()
    envs.close()
    assert envs.closed
    for use in (
        envs.reset,
        lambda: envs.step([0, 0]),
        envs.render,
        lambda: envs.call("mu"),
        lambda: envs.set_attr("mu", 3),
    ):
        for kind in (RuntimeError, gym.error.ClosedEnvironmentError):
            with pytest.raises(kind, match="was closed"):
                use()
