"""Checks that a user writes from docs/how-to/check-an-environment.md, of each form.

mypy checks this module in strict mode, as it would a user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="one of the checks takes a wrapper of it")

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3compat.conformance import Demand, Record, Report, Scene, check, check_vec_env, expect
from sb3compat.conformance.program.source import PLACEHOLDER

pytestmark = pytest.mark.usefixtures("own_checks")


class Robot(gym.Env[Any, Any]):
    """Drives from one end of a track to the other; each step costs a part of the battery."""

    observation_space = spaces.Box(0, 100, (2,), np.float32)
    action_space = spaces.Discrete(2)
    cost = 0.1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.battery = float(self.np_random.uniform(0, 2)), 1.0
        return self.look(), {"battery": 1.0}

    def look(self) -> Any:
        return np.array([self.place, self.battery], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place += float(action) + 0.5
        self.battery -= self.cost
        return self.look(), 1.0, self.place > 4, False, {"battery": self.battery}


class Overdrawn(Robot):
    cost = 0.6


class LeftWhereItStops(Robot):
    """A reset puts it near the place where another one has stopped."""

    stopped = 0.0

    def reset(self, **kwargs: Any) -> Any:
        super().reset(**kwargs)
        self.place += LeftWhereItStops.stopped / 10
        return self.look(), {"battery": 1.0}

    def step(self, action: Any) -> Any:
        results = super().step(action)
        LeftWhereItStops.stopped = self.place
        return results


class Frozen(dict[str, Any]):
    """A dict that nobody may change."""

    def copy(self) -> Any:
        return self

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("frozen")


class FrozenInfos(DummyVecEnv):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, [Frozen(info) for info in infos]


def battery_within_bounds(record: Record) -> Iterator[Demand]:
    """The battery of each row is between 0 and 1."""
    for step in record.steps:
        for i in record.rows:
            level = step.infos[i].get("battery", 1)
            yield expect("0 <= {0} <= 1", level, should="between 0 and 1", row=i)


def twins_start_alike(scene: Scene) -> Iterator[Demand]:
    """An environment that is made after another one starts alike under the same seed."""
    seed = scene.seed()
    env = scene.make()
    first = env.restart(seed)
    for _ in range(scene.choose(range(1, 5))):
        env.step(scene.actions())
    again = scene.make("twin").restart(seed)
    yield expect("np.array_equal({0}, {1})", again.obs, first.obs, should="as at first")


def monitor_sums_rewards(scene: Scene) -> Iterator[Demand]:
    """`VecMonitor` adds up the rewards that the steps have returned."""
    [monitor] = scene.imported("stable_baselines3.common.vec_env", "VecMonitor")
    env = scene.made_by(monitor, "env", scene.make())
    ending = scene.ending()
    act = env.acting(ending)
    env.restart(ending.seed)
    total = np.zeros(scene.n)
    for _ in range(20):
        step = env.step(act())
        total += step.rewards.value
        for i in step.ended:
            entry = step.infos[i]["episode"]["r"]
            yield expect(f"abs({{0}} - {total[i]}) < 1e-6", entry, should=f"{total[i]}", row=i)
            total[i] = 0


BROKEN: dict[Callable[..., Iterator[Demand]], tuple[Callable[[], DummyVecEnv], str]] = {
    battery_within_bounds: (
        lambda: DummyVecEnv([Overdrawn] * 2),
        r".*'battery'.*=-0\.1\d*, but should be between 0 and 1 \[step 2, row 0\]",
    ),
    twins_start_alike: (
        lambda: DummyVecEnv([LeftWhereItStops] * 2),
        r"twin_obs=array\(.*, but should be as at first \[step 1\]",
    ),
    monitor_sums_rewards: (
        lambda: FrozenInfos([Robot] * 2),
        r"obs, rewards, dones, infos = env\.step\(.*\) raised TypeError: frozen",
    ),
}


def report_of(factory: Callable[[], DummyVecEnv], *functions: Callable[..., Any]) -> Report:
    """The report of these checks alone."""
    for function in functions:
        check("vec_env")(function)
    names = [function.__name__ for function in functions]
    options: Any = {"only": names, "programs": 2, "isolate": False}
    # A script without a factory is not run in a Python of its own, which would import SB3.
    return check_vec_env(factory, on_fail=None, make_env=PLACEHOLDER, **options)


def robots() -> DummyVecEnv:
    return DummyVecEnv([Robot] * 2)


def test_checks_of_a_user_pass_a_correct_environment_and_tell_a_broken_one() -> None:
    assert {result.status for result in report_of(robots, *BROKEN).results} == {"passed"}
    for function, (factory, message) in BROKEN.items():
        report = report_of(factory, function)
        assert not report.ok
        assert re.fullmatch(message, report[function.__name__].message)


def nothing_yielded(scene: Scene) -> Any:
    """The function has no `yield`."""
    env, _ = scene.start()
    expect("{0} is None", env.step(scene.actions()).rewards, should="None")


def bool_yielded(record: Record) -> Any:
    """The function yields the answer, and not the condition."""
    for step in record.steps:
        yield bool((step.rewards.value < 0).all())


def demanding(condition: str, name: str) -> Callable[[Record], Iterator[Demand]]:
    """A check of this name that demands this of all rewards."""

    def rewards_are_right(record: Record) -> Iterator[Demand]:
        """The rewards are right."""
        for step in record.steps:
            yield expect(condition, step.rewards, should="right")

    rewards_are_right.__name__ = name
    return rewards_are_right


def no_value(scene: Scene) -> Iterator[Demand]:
    """The value is a method, as no attribute was asked for."""
    env, _ = scene.start()
    yield expect("{0} == 2", env.num_envs, should="2")  # type: ignore[arg-type]


def asking(question: Callable[[Any], object], name: str) -> Callable[[Record], Iterator[Demand]]:
    """A check of this name that asks a value of a step, and not what the value holds."""

    def rewards_are_positive(record: Record) -> Iterator[Demand]:
        """The rewards are positive."""
        for step in record.steps:
            if question(step):
                yield expect("{0} > 0", step.rewards[0], should="positive")

    rewards_are_positive.__name__ = name
    return rewards_are_positive


def misspelt_result(record: Record) -> Iterator[Demand]:
    """There is no such result."""
    for step in record.steps:
        yield expect("{0} > 0", step.reward[0], should="positive")


def class_as_argument(scene: Scene) -> Iterator[Demand]:
    """No script can write the argument down."""
    env, _ = scene.start()
    yield expect("{0}[0]", env.env_is_wrapped(Robot).whole, should="True")


MISTAKES: dict[Callable[..., Any], str] = {
    nothing_yielded: r"returned None\. Write `yield` before each",
    bool_yielded: r"yielded False \(bool\)\. Write `yield expect",
    demanding("{0} > > 3", "no_python"): r"SyntaxError.*other braces are written twice",
    demanding("{0} > {1}", "no_second"): r"a place for each of 1 values.* '\{0\} > \{1\}'",
    demanding("{0}[0] == {'a': 1}", "braces"): r"other braces are written twice",
    demanding("is_finite({0})", "no_name"): (
        r"'is_finite\(\{0\}\)': name 'is_finite' is not defined\. Write"
    ),
    asking(lambda step: step.dones[0], "value_in_an_if"): r"dones\[0\]\. Write `\.value` behind it",
    asking(
        lambda step: step.rewards[0] == 1, "value_compared"
    ): r"rewards\[0\]\. Write `\.value` behind it",
    asking(
        lambda step: "battery" in step.infos[0], "key_looked_for"
    ): r"infos\[0\]\. Write `\.value` behind it",
    misspelt_result: r"result of step \(obs, .*\), got 'reward'\. Did you mean 'rewards'\?",
    no_value: r"such as step\.rewards or env\.attribute\('num_envs'\)",
    class_as_argument: r"Robot.*Take a class or a function from scene\.imported",
}


def test_mistakes_of_checks_are_not_told_of_the_environment() -> None:
    report = report_of(robots, *MISTAKES)
    for function, said in MISTAKES.items():
        result = report[function.__name__]
        assert result.status == "errored"
        assert re.search(said, result.message)
        assert result.message.endswith("not in the environment.")


def nan_is_refused(scene: Scene) -> Iterator[Demand]:
    """An action that is no number raises."""
    env, _ = scene.start()
    error = scene.caught(env.step, np.full((scene.n,), np.nan)).error
    yield expect("{0} is not None", error, should="an exception")


def attribute_becomes_one(scene: Scene) -> Iterator[Demand]:
    """What one call returned is an argument of another."""
    env, _ = scene.start()
    env.set_attr("cost", env.get_attr("cost").whole[0])
    yield expect("{0}[0] == 1", env.get_attr("cost").whole, should="1")


def resets_tell_level(record: Record) -> Iterator[Demand]:
    """The infos of resets have a level."""
    for reset in record.resets:
        for i in record.rows:
            yield expect("{0} >= 0", reset.reset_infos[i]["level"], should="a level")


def steps_tell_level(scene: Scene) -> Iterator[Demand]:
    """The infos of steps have a level."""
    env, _ = scene.start()
    yield expect("{0} >= 0", env.step(scene.actions()).infos[0]["level"], should="a level")


FAILING: dict[Callable[..., Any], str] = {
    resets_tell_level: r"reset_infos\[0\].* should be with \['level'\], which the check reads",
    steps_tell_level: r"infos\[0\].* should be with \['level'\], which the check reads",
    demanding("{0} > 99", "all_above"): "ambiguous",
    nan_is_refused: "should be an exception",
    attribute_becomes_one: r"result=\[0\.1, 0\.1\], but",
}


def test_scripts_of_checks_fail_as_the_checks_do() -> None:
    report = report_of(robots, *FAILING)
    for function, said in FAILING.items():
        result = report[function.__name__]
        assert result.status == "failed"
        assert re.search(said, result.message)
        assert "not every time" not in result.message
        script = result.reproduction.replace(PLACEHOLDER, "")
        assert script != result.reproduction
        with pytest.raises((AssertionError, ValueError)):
            exec(compile(script, function.__name__, "exec"), {"make_env": robots})
