"""From Gymnasium to SB3 and back, and from SB3 to Gymnasium and back, also in mid-episode."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat._convert.spaces import BatchLayout
from tests.envs import Identity, MakeEnv, Script, ScriptedEnv, fns, script
from tests.lockstep import batched, from_start, from_zero, lockstep, rows_of, same
from tests.lockstep_back import back_programs, dummy, monitored, subproc
from tests.lockstep_back import lockstep as lockstep_back
from tests.parallel.teams import forked
from tests.profiles import examples, some
from tests.strategies import programs, scripts
from tests.to_sb3.driving import DISABLED, NEXT_STEP, SAME_STEP, made, mode_of
from tests.vec_wrappers import HandsOn

pytest.importorskip("stable_baselines3")


def makers(chosen: Script, n: int) -> list[MakeEnv]:
    return [MakeEnv(chosen, i) for i in range(n)]


def actions_for(space: Any, n: int, number: int) -> Any:
    space.seed(number)
    return batched(space, [space.sample() for _ in range(n)])


@mode_of
@pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])
def test_vector_env_comes_back_in_its_own_mode(mode: AutoresetMode, cls: Any) -> None:
    env = cls(fns(), autoreset_mode=mode)
    wrapped = Identity(env)
    for original in (env, wrapped):
        assert sb3compat.to_gymnasium(sb3compat.to_sb3(original), autoreset_mode=mode) is original
        for other in {AutoresetMode.SAME_STEP, AutoresetMode.DISABLED} - {mode}:
            ours = sb3compat.to_gymnasium(sb3compat.to_sb3(original), autoreset_mode=other)
            assert isinstance(ours, sb3compat.VectorEnvAdapter)
            assert ours.autoreset_mode == other
    env.close()


def test_closed_environment_does_not_come_back() -> None:
    ours = sb3compat.to_sb3(SyncVectorEnv(fns()))
    ours.close()
    with pytest.raises(sb3compat.ClosedError, match="was closed"):
        sb3compat.to_gymnasium(ours, autoreset_mode="NextStep")


def test_space_that_was_replaced_in_an_adapter_is_presented() -> None:
    env = sb3compat.to_sb3(SyncVectorEnv(fns(), autoreset_mode=AutoresetMode.SAME_STEP))
    env.observation_space = spaces.Box(-2, 2, (3,), np.float32)
    assert sb3compat.to_gymnasium(env).single_observation_space == env.observation_space


def test_pending_seeds_and_options_are_not_lost() -> None:
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
        for method, argument, expected in (
            ("seed", 5, {"seed": [5, 6], "given": [0, 0]}),
            ("set_options", {"x": 3}, {"option": [3, 3], "seed": [-1, -1]}),
        ):
            vec_env = sb3compat.to_sb3(SyncVectorEnv(fns(), autoreset_mode=mode))
            getattr(vec_env, method)(argument)
            infos = sb3compat.to_gymnasium(vec_env, autoreset_mode=mode).reset()[1]
            for key, values in expected.items():
                assert infos[key].tolist() == values


def test_environment_with_a_pending_step_does_not_come_back() -> None:
    vec_env = sb3compat.to_sb3(SyncVectorEnv(fns(), autoreset_mode=AutoresetMode.SAME_STEP))
    vec_env.reset()
    vec_env.step_async(np.array([0, 1]))
    assert isinstance(sb3compat.to_gymnasium(vec_env), sb3compat.VectorEnvAdapter)


def gymnasium_in_mid_episode(
    chosen: Script, n: int, mode: AutoresetMode, source: str, before: int, within: int
) -> None:
    """Steps of the env itself, as a VecEnv, and itself again: the stream of `DummyVecEnv`.

    Compared with the sub-environments driven by SB3 up to there, and by `SyncVectorEnv` after.
    """
    env = made(source, makers(chosen, n), mode)
    reference = made("sync", [MakeEnv(chosen, i, copying=True) for i in range(n)], mode)
    space = chosen.action_space
    env.reset(seed=1)
    reference.reset(seed=1)
    for number in range(before):  # leaves autoresets pending, or rows that have ended
        if mode == AutoresetMode.DISABLED and number:
            break
        env.step(actions_for(space, n, number))
        reference.step(actions_for(space, n, number))
    vec_env, expected = sb3compat.to_sb3(env), dummy(makers(chosen, n))
    expected.envs = reference.envs
    now = vec_env.reset()
    expected.reset()
    for number in range(within):
        now = vec_env.step(actions_for(vec_env.action_space, n, number))[0]
        shifted = rows_of(space, actions_for(vec_env.action_space, n, number), n)
        expected.step([from_start(space, action) for action in shifted])
    same(vec_env.reset_infos, expected.reset_infos)
    back: Any = sb3compat.to_gymnasium(vec_env, autoreset_mode=mode)
    assert back is env
    # By itself, SyncVectorEnv has not seen what went on in between.
    reference._autoreset_envs[:] = False
    mask = np.arange(n) == 0
    got = back.reset(options={"reset_mask": mask})
    wanted = reference.reset(options={"reset_mask": mask})
    same(got[1], wanted[1])
    observed = rows_of(chosen.observation_space, got[0], n)
    same(observed[0], rows_of(chosen.observation_space, wanted[0], n)[0])
    held = [from_zero(chosen.observation_space, observation) for observation in observed]
    same(held[1:], rows_of(chosen.observation_space, now, n)[1:])
    for number in range(3):
        got = back.step(actions_for(space, n, number))
        wanted = reference.step(actions_for(space, n, number))
        same(got, wanted, f"step {number} after it came back")
        if mode == AutoresetMode.DISABLED and (ended := wanted[2] | wanted[3]).any():
            got = back.reset(options={"reset_mask": ended.copy()})
            same(got, reference.reset(options={"reset_mask": ended.copy()}))


@mode_of
@pytest.mark.parametrize("source", ["sync", "sync wrapped"])
@given(data=st.data(), n=st.integers(1, 3), before=st.integers(0, 3), within=st.integers(0, 5))
@settings(max_examples=examples(60))
def test_vector_env_comes_back_in_mid_episode(
    mode: AutoresetMode, source: str, data: st.DataObject, n: int, before: int, within: int
) -> None:
    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    gymnasium_in_mid_episode(chosen, n, mode, source, before, within)


@mode_of
@pytest.mark.parametrize(("source", "before"), [("async", 2), ("async unshared", 1)])
def test_async_vector_env_comes_back_in_mid_episode(
    mode: AutoresetMode, source: str, before: int
) -> None:
    chosen = script(lengths=(2, 3), endings=("truncated", "both"), infos="plain")
    # Without shared memory, an autoreset that is pending happens besides the reset (upstream).
    gymnasium_in_mid_episode(chosen, 2, mode, source, before, 4)


@mode_of
@pytest.mark.parametrize("build", [dummy, subproc, monitored])
@given(data=st.data(), n=st.integers(1, 3), within=st.integers(0, 6))
@settings(max_examples=examples(8))
def test_vec_env_comes_back_in_mid_episode(
    mode: AutoresetMode, build: Any, data: st.DataObject, n: int, within: int
) -> None:
    """Steps as a VectorEnv, then of the VecEnv itself: as if it had been driven directly."""
    if build is monitored and mode == AutoresetMode.NEXT_STEP:
        return
    # Nothing that SubprocVecEnv itself would lose.
    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    vec_env, reference = build(makers(chosen, n)), dummy(makers(chosen, n))
    space = chosen.action_space
    envs = sb3compat.to_gymnasium(vec_env, autoreset_mode=mode)
    reference.seed(3)
    same(envs.reset(seed=3)[0], reference.reset())
    ended = np.zeros(n, bool)
    for number in range(within):
        unshifted = rows_of(space, actions_for(space, n, number), n)
        if mode == AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
        stepped = ~ended if mode == AutoresetMode.NEXT_STEP else np.ones(n, bool)
        ended = np.logical_or(*envs.step(batched(space, unshifted))[2:4])
        for i, env in enumerate(reference.envs):
            if stepped[i]:
                *_, terminated, truncated, _ = env.step(unshifted[i])
                if terminated or truncated:
                    reference.reset_infos[i] = env.reset()[1]
    assert sb3compat.to_sb3(envs) is vec_env
    resets = [info["resets"] for info in vec_env.unwrapped.reset_infos]
    assert resets == [info["resets"] for info in reference.reset_infos]
    for number in range(3):
        unshifted = rows_of(space, actions_for(space, n, number), n)
        compound = isinstance(space, spaces.Dict | spaces.Tuple)
        passed = unshifted if compound else np.asarray(unshifted)
        got, wanted = vec_env.step(passed), reference.step(unshifted)
        same(got[0], wanted[0])
        same(got[2], wanted[2])
    with pytest.raises(RuntimeError, match=r"Expected reset\(\) without a mask, as to_sb3"):
        envs.step(batched(space, unshifted))


# Our own adapters below wrappers: they are bases like Gymnasium's and SB3's own classes.


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
    "async": lambda made: HandsOn(sb3compat.to_sb3(AsyncVectorEnv(made))),
}


@mode_of
@pytest.mark.parametrize("name", LOCAL)
@given(data=st.data(), n=st.integers(1, 3))
@settings(max_examples=examples(60))
def test_vec_env_below_a_vector_wrapper_is_dummy_vec_env(
    mode: AutoresetMode, name: str, data: st.DataObject, n: int
) -> None:
    if mode == NEXT_STEP and name != "dummy":
        return  # refused, as its rows cannot be stepped one by one
    chosen = data.draw(scripts(("none", "plain"), reuse=False))
    program = data.draw(programs(n, max_size=10))
    lockstep(chosen, n, lambda made: shell(LOCAL[name](made), mode), program)


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

    def close_extras(self, **kwargs: Any) -> None:
        self.closed_louder = True
        super().close_extras(**kwargs)


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
    env.close()
    assert ours.unwrapped.closed_louder


def test_mode_of_the_adapter_below_a_vector_wrapper_is_certain() -> None:
    with pytest.raises(sb3compat.AutoresetModeError, match="which is what"):
        sb3compat.to_sb3(shell(dummy(fns()), DISABLED), autoreset_mode="SameStep")
