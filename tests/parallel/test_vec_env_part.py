"""A `VecEnv` as a part of a worker."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import sb3compat
from sb3compat._parallel.parts import layouts
from sb3compat._parallel.vec_env_part import VecEnvSource
from tests.envs import Drawing, fns
from tests.handwritten import AsyncCountingVecEnv
from tests.lockstep import same

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

from tests.parallel.teams import forked
from tests.vec_wrappers import HandsOn


class Changed(HandsOn):
    """Changes what a step returns."""

    def __init__(self, venv: Any, change: Any) -> None:
        super().__init__(venv)
        self.change = change

    def step_wait(self) -> Any:
        return self.change(*self.venv.step_wait())


def source_over(vec_env: Any) -> VecEnvSource:
    spaces = vec_env.observation_space, vec_env.action_space
    return VecEnvSource(vec_env, *layouts(spaces, vec_env.num_envs))


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("terminal_observation", sb3compat.MissingFinalObservationError),
        ("TimeLimit.truncated", sb3compat.MissingTruncationError),
    ],
)
def test_ending_that_is_not_told_in_full_is_refused(
    key: str, error: type[Exception], kept: bool
) -> None:
    def without(obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, [info | {key: None} if kept else _less(info) for info in infos]

    def _less(info: Any) -> Any:
        return {name: value for name, value in info.items() if name != key}

    env = forked([lambda: Changed(DummyVecEnv(fns(2, lengths=(1,))), without)])
    env.reset()
    with pytest.raises(error, match=key):
        env.step(np.zeros(2, int))


class Reporting(AsyncCountingVecEnv):
    """Handwritten: it fills the list of its infos in `reset` only."""

    def reset(self) -> Any:
        self.reset_infos = [{"first": 0}, {"first": 1}]
        return super().reset()


@pytest.mark.parametrize("vec_env", [AsyncCountingVecEnv(), Reporting()])
def test_infos_of_resets_are_those_of_the_last_one_or_empty(vec_env: Any) -> None:
    source = source_over(vec_env)
    first = source.reset([None, None], [{}, {}])[1]
    assert first == getattr(vec_env, "reset_infos", [{}, {}])
    source.send([np.zeros(2, int)])
    source.receive()
    source.send([np.zeros(2, int)])
    assert source.receive().reset_infos == {0: {}}


@pytest.mark.parametrize(
    "change",
    [
        lambda o, r, d, i: (o, r, d, d, i),
        lambda o, r, d, i: (o, r[:1], d, i),
    ],
)
def test_malformed_step_is_refused_as_from_one_by_itself(change: Any) -> None:
    env = forked([lambda: Changed(DummyVecEnv(fns(2, lengths=(1, 9))), change)])
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match=r"rewards, dones, infos\)|rewards.shape"):
        env.step(np.zeros(2, int))


def waiting(nested: bool) -> Any:
    vec_env = DummyVecEnv(fns(2, infos="wild"))
    made = VecMonitor(forked([lambda: vec_env]) if nested else vec_env)
    made.seed(7)
    made.set_options([{"x": 1}, {"x": 2}])
    return made


@pytest.mark.parametrize("given", ["nothing", None, {}, {"x": 3}, [{}, {"x": 4}]])
@pytest.mark.parametrize("stepping", [False, True])
@pytest.mark.parametrize(("nested", "policy"), [(False, "restart"), (True, "raise")])
def test_what_waits_in_a_part_is_for_its_first_reset_but_for_options_that_are_set_later(
    given: Any, stepping: bool, nested: bool, policy: str
) -> None:
    ours, alone = forked([lambda: waiting(nested)], on_worker_lost=policy), waiting(nested)
    for env in (ours, alone):
        if stepping:
            env.reset()
            env.set_options({"x": 9})
            env.step_async(np.zeros(2, int))
        if given != "nothing":
            env.set_options(given)
        if stepping and env is alone:
            env.step_wait()
    for _ in range(2):
        np.testing.assert_array_equal(ours.reset(), alone.reset())
        assert ours.reset_infos == alone.unwrapped.reset_infos
    assert ours.reset_infos[0]["options"] is None


def test_wrapper_with_a_seed_of_its_own_is_not_passed_by() -> None:
    class OneSeed(VecMonitor):
        def seed(self, seed: int | None = None) -> Any:
            return self.venv.seed(None if seed is None else seed + 100)

    def make() -> Any:
        return OneSeed(DummyVecEnv(fns(2)))

    ours, alone = forked([make]), make()
    for env in (ours, alone):
        env.seed(3)
        env.reset()
    assert [info["seed"] for info in ours.reset_infos] == [103, 104]
    assert not ours.seeds_rows
    with pytest.raises(ValueError, match="seed"):
        sb3compat.to_gymnasium(ours).reset(seed=[5, 3])


class RefusesTwo(HandsOn):
    """Checks actions before it passes them on."""

    def step_async(self, actions: Any) -> None:
        if 2 in actions:
            raise ValueError("no action 2")
        self.venv.step_async(actions)


KINDS: dict[str, Any] = {
    "dummy": DummyVecEnv,
    "sync": lambda fns: sb3compat.to_sb3(SyncVectorEnv(fns)),
    "subproc, with workers": partial(SubprocVecEnv, start_method="fork"),
    "async, with workers": lambda fns: sb3compat.to_sb3(AsyncVectorEnv(fns)),
    "nested, with workers": forked,
}


@pytest.mark.parametrize("name", KINDS)
def test_step_that_a_part_refuses_steps_no_row_without_workers(name: str) -> None:
    def alone() -> Any:
        return RefusesTwo(KINDS[name]([Drawing] * 2))

    actions = np.array([0, 1, 0, 1, 2, 0])
    parts = [lambda: DummyVecEnv([Drawing] * 2), alone, alone]
    ours = forked(parts, 1, timeout=10)
    expected = [DummyVecEnv([Drawing] * 2) for _ in range(3)]
    for number, env in enumerate(expected):
        env.seed(2 * number)
    ours.seed(0)
    starts = [env.reset() for env in expected]
    np.testing.assert_array_equal(ours.reset(), np.concatenate(starts))
    with pytest.raises(ValueError, match="no action 2"):
        ours.step(actions)
    assert ours.get_attr("action_space") == [Drawing.action_space] * 6
    if "workers" in name:
        expected[1].step(actions[2:4])  # its workers had got the step
    starts = [env.reset() for env in expected]
    np.testing.assert_array_equal(ours.reset(), np.concatenate(starts))


def test_seeds_of_a_reset_that_fails_are_not_left_in_a_part() -> None:
    vec_env = forked([lambda: DummyVecEnv([Drawing] * 2)])
    envs = sb3compat.to_gymnasium(vec_env)
    with pytest.raises(KeyError):
        envs.reset(seed=3, options={"fail": True})
    _, infos = envs.reset()
    assert infos["seed"].tolist() == [None, None]
    # By itself, a VecEnv keeps them, as DummyVecEnv does.
    vec_env.seed(3)
    vec_env.set_options({"fail": True})
    with pytest.raises(KeyError):
        vec_env.reset()
    vec_env.set_options()
    vec_env.reset()
    assert [info["seed"] for info in vec_env.reset_infos] == [3, 4]


class Doubles(HandsOn):
    """Overrides the method that SB3's algorithms call."""

    def step(self, actions: Any) -> Any:
        obs, rewards, dones, infos = super().step(actions)
        return obs, rewards + 1, dones, infos


def test_step_that_a_part_overrides_is_called() -> None:
    def part() -> Any:
        return Doubles(DummyVecEnv([Drawing] * 2))

    ours, alone = forked([part]), part()
    for env in (ours, alone):
        env.seed(0)
        env.reset()
    for _ in range(2):
        one, other = (env.step(np.zeros(2, int)) for env in (ours, alone))
        same(one[:3], other[:3])
