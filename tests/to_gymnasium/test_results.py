"""What a `VecEnv` has returned: the infos of its resets, and those that rows share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import sb3compat
from tests.envs import Returns, fns
from tests.handwritten import CountingVecEnv
from tests.lockstep_back import dummy, monitored, subproc
from tests.vec_wrappers import HandsOn

vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.array([0, 1])


@pytest.mark.parametrize("build", [dummy, subproc])
def test_infos_of_resets_are_those_of_the_innermost_environment(build: Any) -> None:
    wrapped = HandsOn(build(fns(lengths=(2, 3))))
    wrapped.reset_infos = [{"filled": 1}] * 2  # a list of its own, which SB3 itself never reads
    envs = sb3compat.to_gymnasium(wrapped)
    assert envs.reset()[1]["resets"].tolist() == [1, 1]
    envs.step([0, 0])
    _, _, terminations, _, infos = envs.step([0, 0])
    # The row that goes on has no info of a reset.
    assert terminations.tolist() == [False, True]
    assert infos["resets"].tolist() == [0, 2]
    assert "filled" not in infos
    held = envs.vec_env.unwrapped.reset_infos[1]
    infos = envs.reset()[1]
    assert infos["resets"].tolist() == [2, 3]
    held["resets"] = envs.vec_env.unwrapped.reset_infos[1]["resets"] = 9
    assert infos["resets"].tolist() == [2, 3]


class Reporting(CountingVecEnv):
    """Handwritten: it reports the same infos in each `reset`, and within steps if told so."""

    firsts = ({"first": 0}, {"first": 1})
    reset_infos: Any = ({}, {})
    within_steps = False

    def reset(self) -> Any:
        self.reset_infos = list(self.firsts)
        return super().reset()

    def step(self, actions: Any) -> Any:
        result = super().step(actions)
        self.reset_infos = list(self.reset_infos)  # another list of the same dicts
        for row in np.flatnonzero(result[2]) if self.within_steps else ():
            self.reset_infos[row] = {"first": 7}
        return result


@pytest.mark.parametrize("within_steps", [True, False])
def test_infos_of_an_earlier_reset_are_not_those_of_a_reset_within_a_step(
    within_steps: bool,
) -> None:
    vec_env = Reporting()
    vec_env.within_steps = within_steps
    envs = sb3compat.to_gymnasium(vec_env)
    assert envs.reset()[1]["first"].tolist() == [0, 1]
    envs.step(ACTIONS)
    infos = envs.step(ACTIONS)[-1]
    assert ("first" in infos) == within_steps
    if within_steps:
        assert infos["_first"].tolist() == [True, False]
    assert envs.reset()[1]["first"].tolist() == [0, 1]


def test_reset_info_that_a_sub_environment_returns_again_is_one_of_a_reset_within_a_step() -> None:
    same_info = {"first": 1}
    made = [lambda: Returns(reset=lambda obs, _: (obs, same_info), lengths=(1,))]
    envs = sb3compat.to_gymnasium(monitored(made))
    for infos in (envs.reset()[1], envs.step([0])[-1], envs.step([0])[-1]):
        assert infos["first"].tolist() == [1]


@pytest.mark.parametrize("wrap", [vec_envs.VecCheckNan, vec_envs.VecMonitor])
def test_info_dict_that_rows_share_is_refused(wrap: Any) -> None:
    common: dict[str, Any] = {}
    # VecMonitor copies those of rows that end, which here are all of them.
    how: Any = {"lengths": (1,), "endings": ("terminated", "truncated")}
    how["step"] = lambda *result: (*result[:4], common)
    made = [lambda row=row: Returns(row, **how) for row in range(2)]
    envs = sb3compat.to_gymnasium(wrap(dummy(made)))
    envs.reset()
    with pytest.raises(sb3compat.ConversionError, match="its own info dict"):
        envs.step(ACTIONS)


def keeping(row: int) -> Any:
    """Each step and reset returns the same dict, without clearing it."""
    kept: dict[str, Any] = {}

    def own(*result: Any) -> Any:
        kept["time"] = result[-1]["shared"]
        return *result[:-1], kept

    return Returns(row, step=own, reset=own, lengths=(2 + row,))


class Stepping(vec_envs.DummyVecEnv):
    """Has a method for its steps, which calls that of SB3."""

    def step_wait(self) -> Any:
        return super().step_wait()


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize(
    "build",
    [
        monitored,
        lambda made: vec_envs.VecCheckNan(subproc(made)),
        lambda made: vec_envs.VecCheckNan(Stepping(made)),
    ],
)
def test_infos_that_a_reset_has_overwritten_are_refused(build: Any, mode: str) -> None:
    made = [partial(keeping, row) for row in (0, 1)]
    envs = sb3compat.to_gymnasium(build(made), autoreset_mode=mode)
    envs.reset()
    assert envs.step(ACTIONS)[-1]["time"].tolist() == [1, 1]
    with pytest.raises(sb3compat.ConversionError, match="the dict that its step had returned"):
        envs.step(ACTIONS)


def test_infos_of_resets_that_rows_share_are_refused() -> None:
    common: dict[str, Any] = {}

    def resets(row: int) -> Any:
        return Returns(row, reset=lambda obs, _: (obs, common.update(row=row) or common))

    made = [partial(resets, row) for row in (0, 1)]
    envs = sb3compat.to_gymnasium(monitored(made))
    with pytest.raises(sb3compat.ConversionError, match="got one dict for several rows"):
        envs.reset()
    # Row by row, and where only one of them is reset.
    envs = sb3compat.to_gymnasium(dummy(made))
    assert envs.reset()[1]["row"].tolist() == [0, 1]
    envs = sb3compat.to_gymnasium(monitored(made[1:]))
    assert envs.reset()[1]["row"].tolist() == [1]


def test_infos_that_a_wrapper_shares_are_accepted() -> None:
    wrapped: Any = HandsOn(dummy(fns()))
    step_wait = wrapped.step_wait
    wrapped.step_wait = lambda: (*step_wait()[:3], [{}] * 2)
    envs = sb3compat.to_gymnasium(wrapped)
    envs.reset()
    assert envs.step(ACTIONS)[-1] == {}
