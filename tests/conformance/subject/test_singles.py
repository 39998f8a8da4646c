"""Single environments that need not be passed, as it is known how a vector environment has them."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from conformance.specimens.points import Config, Kept, Point
from sb3compat.conformance.run.reproduction import reproduction
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from tests.conformance.found import find_check
from tests.conformance.kit import judge

CARTPOLE = partial(gym.make, "CartPole-v1")


class Changed(SyncVectorEnv):
    """A subclass may change what its single environments return."""


def sync(cls: type = SyncVectorEnv, **options: Any) -> Any:
    return cls([CARTPOLE] * 2, **options)


def dummy() -> Any:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    return vec_env.DummyVecEnv([CARTPOLE] * 2)


def subproc(make: Any = CARTPOLE) -> Any:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    return vec_env.SubprocVecEnv([make] * 2, start_method="fork")


def heavy() -> Any:
    env: Any = gym.make("CartPole-v1")
    env.unwrapped.gravity = 20.0
    return env


def without_its_limit() -> Any:
    env: Any = gym.make("CartPole-v1").unwrapped
    env.spec = gym.spec("CartPole-v1")
    return env


def unrecorded() -> Any:
    class Own(gym.Wrapper[Any, Any, Any, Any]):
        pass

    return Own(gym.make("CartPole-v1"))


def unregistered() -> Any:
    env: Any = gym.make("CartPole-v1").unwrapped
    env.spec = None
    return env


@pytest.mark.parametrize("make", [heavy, without_its_limit, unrecorded, unregistered])
def test_specs_count_only_where_the_rows_are_as_they_say(make: Any) -> None:
    assert not examine(partial(subproc, make), seconds=None).referenced


def test_singles_of_specs_are_compared_with() -> None:
    results = judge(examine(subproc), only=["rows_match_reference"])
    assert {result.status for result in results.values()} == {"passed"}


@pytest.mark.parametrize("factory", [sync, dummy, subproc])
def test_those_of_known_classes_are_known(factory: Any) -> None:
    subject = examine(factory, seconds=None)
    assert subject.referenced
    assert subject.capabilities["reference"]
    singles = subject.instances().reference
    assert singles is not None
    first, again = singles[0](), singles[0]()
    assert first is not again
    assert isinstance(first, gym.Env)


def test_those_of_other_classes_are_not() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    for factory in (
        lambda: sync(Changed),
        lambda: vec_env.VecMonitor(dummy()),
    ):
        assert not examine(factory, seconds=None).referenced


class Wide(Point):
    def observe(self) -> Any:
        return self.point


class Narrowed(Kept):
    """It casts what its single environments return."""

    row = Wide

    def batch(self, observations: list[Any]) -> Any:
        return super().batch(observations).astype(np.float32)


class CutShort(Kept):
    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        if self.envs[i].unwrapped.time == 2:
            info["terminal_observation"], done, obs = obs, True, self.autoreset(i)
        return obs, reward, done, info


class Scaled(Kept):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards * 2, dones, infos


class Reversed(Kept):
    def batch(self, observations: list[Any]) -> Any:
        return super().batch(observations)[:, ::-1]


class ToldOtherwise(Kept):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, [{} for _ in infos]


class BegunOtherwise(Kept):
    def autoreset(self, i: int) -> Any:
        super().autoreset(i)
        return super().autoreset(i)


class ToldOtherwiseByResets(Kept):
    def reset(self) -> Any:
        obs = super().reset()
        self.reset_infos = [{} for _ in self.envs]
        return obs


def endless() -> Any:
    return Kept(Config(lengths=(10_000,)))


def terminating() -> Any:
    """It may have a time limit of its own, which no episode has reached."""
    return Kept(Config(ends=("terminated",)))


class OneForAll(Kept):
    def __init__(self) -> None:
        super().__init__()
        self.rows = [self.envs[0]] * self.num_envs


@pytest.mark.parametrize("factory", [Kept, Narrowed])
def test_those_that_a_vec_env_keeps_are_compared_with(factory: Any) -> None:
    subject = examine(factory, seconds=None)
    assert subject.singles == "rows"
    assert any("in its list 'rows'" in note for note in subject.notes)
    assert subject.capabilities["reference"]
    assert {result.status for result in judge(subject, only=["rows_match_reference"]).values()} == {
        "passed"
    }


class ClosesAsItIsDeleted(Kept):
    def __del__(self) -> None:
        for row in self.rows:
            row.closed = True


def test_what_keeps_them_lives_as_long_as_they_do() -> None:
    singles = examine(ClosesAsItIsDeleted, seconds=None).instances().reference
    assert singles is not None
    single = singles[0]()
    gc.collect()
    assert not hasattr(single, "closed")


@pytest.mark.parametrize(
    "factory",
    [
        CutShort, Scaled, Reversed, ToldOtherwise, BegunOtherwise, ToldOtherwiseByResets, endless,
        terminating,
        OneForAll,
    ],
)  # fmt: skip
def test_those_that_a_vec_env_keeps_count_only_if_its_rows_do_what_they_do(factory: Any) -> None:
    assert not examine(factory, seconds=None).referenced


def test_those_that_a_vec_env_keeps_need_a_second_instance() -> None:
    made: list[Kept] = []

    def once() -> Kept:
        if made:
            raise RuntimeError("the port is taken")
        made.append(Kept())
        return made[0]

    assert not examine(once, seconds=None).referenced


@pytest.mark.parametrize("name", ["reference", "separate_rows"])
def test_a_declaration_wins(name: str) -> None:
    """A row of a world that all rows share does not do what its single environment does alone."""
    for factory in (sync, Kept):
        assert not examine(factory, seconds=None, declared={name: False}).referenced


@pytest.mark.parametrize("factory", [sync, dummy, subproc])
def test_a_script_makes_them_itself(factory: Any) -> None:
    subject = examine(factory, seconds=None)
    check = find_check(subject.family, "rows_match_reference")
    source = (
        "import gymnasium as gym\nfrom functools import partial\n"
        "from tests.conformance.subject.test_singles import sync, dummy, subproc\n"
        f"make_env = {factory.__name__}"
    )
    lines = [
        "singles = [make() for make in reference]",
        "assert all(single.spec.id == 'CartPole-v0' for single in singles)",
    ]
    script = reproduction(check, subject, Settings(make_env=source), lines)
    with pytest.raises(AssertionError):
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
    assert "reference =" not in reproduction(check, subject, Settings(), ["env = make_env()"])
