"""Which layer's `reset_infos` count: after a reset, and after a reset within a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._to_gymnasium.reset_infos import ResetInfos
from tests.envs import fns
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import dummy, subproc

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")


class Transparent(vec_envs.VecEnvWrapper):
    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        return self.venv.step_wait()


class NewList(Transparent):
    """Fills the list in `reset` only, as SuperSuit's wrapper does."""

    def reset(self) -> Any:
        observations = self.venv.reset()
        self.reset_infos = [{"filled": 1, **info} for info in self.venv.reset_infos]
        return observations


class InPlace(Transparent):
    """Writes the same into the same dicts each time."""

    def reset(self) -> Any:
        observations = self.venv.reset()
        for info in self.reset_infos:
            info["filled"] = 1
        return observations


class WithinSteps(NewList):
    """Fills the list for resets within a step as well."""

    def step_wait(self) -> Any:
        result = self.venv.step_wait()
        for i in np.flatnonzero(result[2]):
            self.reset_infos[i] = {"filled": 2, **self.venv.reset_infos[i]}
        return result


class Forwarding(Transparent):
    reset_infos: Any = property(lambda self: self.venv.reset_infos, lambda self, value: None)


WRAPPERS: dict[str, tuple[Any, int, int]] = {
    "nothing written": (Transparent, 0, 0),
    "a new list": (NewList, 1, 0),
    "in place": (InPlace, 1, 0),
    "within steps as well": (WithinSteps, 1, 2),
    "a property": (Forwarding, 0, 0),
    "below another wrapper": (lambda env: Transparent(NewList(env)), 1, 0),
    "above another one": (lambda env: InPlace(WithinSteps(env)), 1, 2),
}


def filled(infos: Any) -> list[int]:
    return list(infos.get("filled", np.zeros(2, int)))


@pytest.mark.parametrize("build", [dummy, subproc])
@pytest.mark.parametrize("name", WRAPPERS)
def test_reset_infos_of_a_wrapper_count_where_it_has_written_them(name: str, build: Any) -> None:
    wrap, in_reset, in_step = WRAPPERS[name]
    envs = sb3compat.to_gymnasium(wrap(build(fns(lengths=(2, 3)))))
    assert filled(envs.reset()[1]) == [in_reset] * 2
    envs.step([0, 0])
    _, _, terminations, _, infos = envs.step([0, 0])
    # The row that goes on has no info of a reset.
    assert terminations.tolist() == [False, True]
    assert filled(infos) == [0, in_step]
    assert infos["resets"].tolist() == [0, 2]
    assert filled(envs.reset()[1]) == [in_reset] * 2
    envs.close()


def test_held_rows_keep_the_info_of_their_reset() -> None:
    wrapped = WithinSteps(dummy(fns(lengths=(1,))))
    envs = sb3compat.to_gymnasium(wrapped, autoreset_mode="Disabled")
    assert filled(envs.reset()[1]) == [1, 1]
    ended = envs.step([0, 0])[2]
    wrapped.reset_infos[0]["filled"] = 3
    assert filled(envs.reset(options={"reset_mask": ended})[1]) == [2, 2]


class Base:
    """A vector environment of another kind, whose reset returns infos; it has no reset_infos."""

    num_envs = 2
    render_mode = None

    def __init__(self) -> None:
        self.counting = CountingVecEnv()
        self.observation_space = self.counting.observation_space
        self.action_space = self.counting.action_space

    def reset(self) -> Any:
        return self.counting.reset(), [{"first": row} for row in range(2)]

    def step(self, actions: Any) -> Any:
        return self.counting.step(np.asarray(actions))


class OverBase(vec_envs.VecEnvWrapper):
    def __init__(self, base: Any) -> None:
        self.venv, self.num_envs, self.render_mode = base, base.num_envs, None
        self.observation_space, self.action_space = base.observation_space, base.action_space
        self.reset_infos: Any = []
        self.class_attributes: Any = {}

    unwrapped: Any = property(lambda self: self)

    def reset(self) -> Any:
        observations, self.reset_infos = self.venv.reset()
        return observations

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        return self.venv.step(self.actions)


def test_wrapper_around_another_kind_of_environment_keeps_the_infos_of_its_reset() -> None:
    envs = sb3compat.to_gymnasium(OverBase(Base()))
    assert envs.reset()[1]["first"].tolist() == [0, 1]
    envs.step([0, 0])
    infos = envs.step([0, 0])[-1]
    assert infos["_final_info"].tolist() == [True, False]
    assert "first" not in infos
    assert envs.reset()[1]["first"].tolist() == [0, 1]


class Stale(CountingVecEnv):
    """Handwritten: the infos of its reset are out of date after a reset within a step."""

    def __init__(self) -> None:
        super().__init__()
        self.reset_infos: Any = [{}, {}]

    def reset(self) -> Any:
        self.reset_infos = [{"first": row} for row in range(2)]
        return super().reset()


def test_infos_that_a_base_of_ones_own_writes_in_reset_only_are_not_those_of_a_step() -> None:
    envs = sb3compat.to_gymnasium(Stale())
    assert envs.reset()[1]["first"].tolist() == [0, 1]
    envs.step([0, 0])
    assert "first" not in envs.step([0, 0])[-1]


def test_infos_are_copies() -> None:
    env = Stale()
    infos = ResetInfos(env)
    env.reset()
    first = infos.after_reset()
    env.reset_infos[0]["first"] = 7
    assert first == [{"first": 0}, {"first": 1}]
    assert infos.within_step(0) == {"first": 7}
    assert infos.within_step(0) == infos.within_step(1) == {}
