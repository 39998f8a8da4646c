"""Our own adapters below wrappers: they are bases like Gymnasium's and SB3's own classes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat._convert.spaces import BatchLayout
from tests.envs import Identity, ScriptedEnv, fns, script
from tests.lockstep import lockstep
from tests.lockstep_back import back_programs, dummy, subproc
from tests.lockstep_back import lockstep as lockstep_back
from tests.parallel.teams import forked
from tests.profiles import examples, some
from tests.strategies import programs, scripts
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, mode_of
from tests.vec_wrappers import HandsOn


def shell(vec_env: Any, mode: AutoresetMode = SAME_STEP) -> Any:
    return Identity(sb3compat.to_gymnasium(vec_env, autoreset_mode=mode))


# `VecEnv`s to be adapted to Gymnasium and wrapped there.
LOCAL: dict[str, Callable[[list[Any]], Any]] = {
    "dummy": dummy,
    "wrapped dummy": lambda made: HandsOn(dummy(made)),
    "to_sb3": lambda made: HandsOn(sb3compat.to_sb3(SyncVectorEnv(made))),
    "wrapped to_sb3": lambda made: HandsOn(sb3compat.to_sb3(Identity(SyncVectorEnv(made)))),
    "twice": lambda made: HandsOn(sb3compat.to_sb3(shell(dummy(made), DISABLED))),
}
ALL: dict[str, Callable[[list[Any]], Any]] = {
    **LOCAL,
    "subproc": subproc,
    "parallel": forked,
    "wrapped subproc": lambda made: HandsOn(subproc(made)),
    "wrapped parallel": lambda made: HandsOn(forked(made)),
    "async": lambda made: HandsOn(sb3compat.to_sb3(AsyncVectorEnv(made))),
}
BY_ROW = ("dummy", "subproc", "parallel")


@mode_of
@pytest.mark.parametrize("name", LOCAL)
@given(data=st.data(), n=st.integers(1, 3))
@settings(max_examples=examples(60))
def test_vec_env_below_a_vector_wrapper_is_dummy_vec_env(
    mode: AutoresetMode, name: str, data: st.DataObject, n: int
) -> None:
    if mode == NEXT_STEP and name not in BY_ROW:
        return  # refused, as its rows cannot be stepped one by one
    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    program = data.draw(programs(n, max_size=10))
    lockstep(chosen, n, lambda made: shell(LOCAL[name](made), mode), program)


@mode_of
@pytest.mark.parametrize("name", some([name for name in ALL if name not in LOCAL], 2))
def test_workers_below_a_vector_wrapper_are_dummy_vec_env(mode: AutoresetMode, name: str) -> None:
    if mode == NEXT_STEP and name not in BY_ROW:
        return
    chosen = script(lengths=(2, 3), endings=("truncated", "both"))
    program: list[Any] = [("seed", 5), ("options", [{"x": 1}, None, {"x": 2}]), ("reset", None)]
    program += [*[("step", number) for number in range(5)], ("seed", 2), ("reset", None)]
    lockstep(chosen, 3, lambda made: shell(ALL[name](made), mode), program)


@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED])
@pytest.mark.parametrize("layer", [lambda env: env, Identity])
@given(data=st.data(), n=st.integers(1, 3), own=st.sampled_from([NEXT_STEP, SAME_STEP]))
@settings(max_examples=examples(60))
def test_vector_env_below_a_vec_env_wrapper_is_sync_vector_env(
    mode: AutoresetMode, layer: Any, data: st.DataObject, n: int, own: AutoresetMode
) -> None:
    def build(made: Any) -> Any:
        return HandsOn(sb3compat.to_sb3(layer(SyncVectorEnv(made, autoreset_mode=own))))

    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    for space in (chosen.observation_space, chosen.action_space):
        assume(space == BatchLayout(space, n, "observation_space").presented)  # SB3 counts from 0
    lockstep_back(chosen, n, mode, build, data.draw(back_programs(n)), rounds=True, whole=True)


class Masked(gym.Wrapper[Any, Any, Any, Any]):
    """Has what MaskablePPO asks for, and what cannot be pickled."""

    def __init__(self, row: int) -> None:
        super().__init__(ScriptedEnv(script(), row))
        self.lock = Lock()

    def action_masks(self) -> Any:
        return np.arange(4) != self.unwrapped.row  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", some(["async", "parallel", "to_sb3", "subproc"], 2))
def test_methods_of_environments_that_cannot_be_sent_are_called(name: str) -> None:
    envs = sb3compat.to_gymnasium(
        HandsOn(ALL[name]([lambda row=row: Masked(row) for row in range(3)]))
    )
    assert [mask.tolist().index(False) for mask in envs.call("action_masks")] == [0, 1, 2]
    assert envs.get_attr("row") == (0, 1, 2)


class Louder(sb3compat.VectorEnvAdapter):
    """A subclass that does more than the adapter, in each of its methods."""

    def step(self, actions: Any) -> Any:
        obs, rewards, *rest = super().step(actions)
        return obs, rewards + 100, *rest

    def reset(self, **kwargs: Any) -> Any:
        obs, infos = super().reset(**kwargs)
        return obs + 50, infos

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return tuple(("louder", value) for value in super().call(name, *args, **kwargs))


@mode_of
@pytest.mark.parametrize("wrap", [lambda env: env, Identity])
def test_overridden_methods_of_the_adapter_are_not_bypassed(wrap: Any, mode: AutoresetMode) -> None:
    ours = wrap(Louder(dummy(fns(lengths=(1,))), autoreset_mode=mode))
    if mode != SAME_STEP:
        sb3compat.register_partial_reset(Louder, sb3compat.reset_with_mask)
    env = sb3compat.to_sb3(ours)
    assert (env.reset() > 40).all()
    obs, rewards, dones, _ = env.step([0, 0])
    assert dones.all()
    assert (rewards > 90).all()
    assert (obs > 40).all() == (mode != SAME_STEP)  # there, the adapter's own step resets
    with pytest.raises(AttributeError, match="no sub-environments"):
        env.get_attr("mu")


def test_mode_of_the_adapter_below_a_vector_wrapper_is_certain() -> None:
    with pytest.raises(sb3compat.AutoresetModeError, match="which is what"):
        sb3compat.to_sb3(shell(dummy(fns()), DISABLED), autoreset_mode="SameStep")
