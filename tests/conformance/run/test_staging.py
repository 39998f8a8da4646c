"""How scenarios are run: how often, with which draws, and what becomes of a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sb3compat.conformance import Demand, Result, Scene, expect
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.program.journal import read_journal
from sb3compat.conformance.run.checking import run_check
from sb3compat.conformance.run.report import UNREACHED
from sb3compat.conformance.run.reproduction import NOT_EVERY_TIME
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from tests.conformance.found import find_check
from tests.conformance.tiny import Raises, TinyVecEnv

Scenario = Callable[[Scene], Iterator[Demand]]


def staged(
    scenario: Scenario,
    factory: Callable[[], Any] = TinyVecEnv,
    *,
    shared: bool = False,
    **settings: Any,
) -> Result:
    check = replace(find_check("vec_env", "subclasses_vec_env"), needs=(), function=scenario)
    return run_check(check, replace(examine(factory), shared=shared), Settings(**settings))


def calls_of(result: Result) -> list[str]:
    """The lines of the script from the first instance on."""
    lines = result.reproduction.splitlines()
    return lines[lines.index("env = make_env()") :]


def holds(scene: Scene) -> Demand:
    return expect("{0} > 0", scene.make().attribute("num_envs"), should="positive")


def drawing(*sizes: int) -> Scenario:
    """A scenario that draws numbers below these."""

    def scenario(scene: Scene) -> Iterator[Demand]:
        for size in sizes:
            scene.choose(range(size))
        yield holds(scene)

    return scenario


@pytest.mark.parametrize(
    ("sizes", "programs", "runs"),
    [((), 9, 1), ((3,), 9, 3), ((2, 3), 9, 6), ((2, 3), 4, 4), ((1000, 1000), 5, 5)],
)
def test_a_scenario_is_run_with_all_draws_or_as_often_as_is_asked(
    sizes: tuple[int, ...], programs: int, runs: int
) -> None:
    result = staged(drawing(*sizes), programs=programs)
    assert (result.status, result.examples) == ("passed", runs)


def test_a_scenario_is_run_twice_where_no_time_is_left_and_once_if_it_is_slow() -> None:
    assert staged(drawing(1000), seconds=0).examples == 2
    slow = replace(examine(TinyVecEnv), step_seconds=1.0)
    check = replace(find_check("vec_env", "subclasses_vec_env"), needs=(), function=drawing(9))
    assert run_check(check, slow, Settings(seconds=0)).examples == 1


def test_shrinking_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)

    def scenario(scene: Scene) -> Iterator[Demand]:
        nonlocal now
        now += 1  # each run takes a second
        drawn = [scene.choose(range(1000)) for _ in range(20)]
        env = scene.make().attribute("num_envs")
        yield expect(f"{{0}} == 2 and {sum(drawn) == 0}", env, should="zeros")

    assert staged(scenario, seconds=5).examples == 2 + 2 * 5 + 1
    assert staged(scenario).examples > 20


def few_steps(scene: Scene) -> Iterator[Demand]:
    """Fails from the third step on."""
    env, _ = scene.start()
    for _ in range(scene.choose(range(1, 30))):
        step = env.step(scene.actions())
        scene.make("twin") if scene.choose((False, True)) else None
        yield expect(f"{step.step} < 3 or {{0}} is None", step.rewards, should="fewer steps")


def test_a_failure_is_shrunk_to_the_simplest_draws() -> None:
    result = staged(few_steps)
    assert result.status == "failed"
    assert NOT_EVERY_TIME not in result.message
    *calls, assertion = calls_of(result)
    assert calls == [
        "env = make_env()",
        "env.seed(0)",
        "obs = env.reset()",
        "for _ in range(3):",
        "    obs, rewards, dones, infos = env.step(np.full((2,), 0, np.int64))",
    ]
    assert assertion.startswith("assert 3 < 3 or rewards is None, 'rewards=array([1., 1.]")


def test_calls_that_the_demand_is_not_about_stay_out_of_the_script_if_it_fails_without() -> None:
    def scenario(scene: Scene) -> Iterator[Demand]:
        env, _ = scene.start()
        scene.make("twin").reset()
        env.reset()
        yield expect("{0} < 0", env.attribute("num_envs"), should="negative")

    assert "twin = make_env()" not in calls_of(staged(scenario))

    class Counts(TinyVecEnv):
        """Knows how many there are, and fails only beside another one."""

        number = 0

        def __init__(self) -> None:
            super().__init__()
            Counts.number += 1
            self.number = Counts.number

        def close(self) -> None:
            Counts.number -= 1

    def beside(scene: Scene) -> Iterator[Demand]:
        scene.make("twin")
        env = scene.make()
        resets = scene.choose(range(40))
        for _ in range(resets):
            env.reset()
        number = env.attribute("number")
        yield expect(f"{{0}} == 1 or {resets} == 0", number, should="alone")

    result = staged(beside, Counts)
    assert result.status == "failed"
    lines = result.reproduction.splitlines()
    assert lines[-4:-1] == ["twin = make_env()", "env = make_env()", "obs = env.reset()"]


@pytest.mark.parametrize(
    ("ends", "status", "message"),
    [
        (lambda scene: None, "not_exercised", UNREACHED),
        (lambda scene: scene.partly("pass options"), "partly_exercised", "pass options"),
        (lambda scene: setattr(scene, "judged", True), "passed", ""),
        (lambda scene: {}["key"], "errored", "the check itself raised KeyError: 'key'. The mis"),
    ],
)
def test_a_scenario_without_a_demand_says_why(
    ends: Callable[[Scene], object], status: str, message: str
) -> None:
    def scenario(scene: Scene) -> Iterator[Demand]:
        scene.make()
        ends(scene)
        yield from ()

    result = staged(scenario)
    assert result.status == status
    assert result.message.startswith(message)
    assert bool(message) == bool(result.message)


def test_the_reason_of_a_scenario_is_its_own() -> None:
    def scenario(scene: Scene) -> Iterator[Demand]:
        raise NotExercisedError("it has no lights")
        yield

    result = staged(scenario)
    assert (result.status, result.message) == ("not_exercised", "it has no lights")


def test_an_exception_of_the_environment_is_a_failure_with_its_script() -> None:
    def scenario(scene: Scene) -> Iterator[Demand]:
        env, _ = scene.start()
        for _ in range(9):
            env.step(scene.actions())
        yield holds(scene)

    result = staged(scenario, Raises)
    assert result.status == "errored"
    assert result.message.endswith("raised OSError: the simulator is gone")
    assert calls_of(result)[-3:] == [
        "for _ in range(2):",
        "    obs, rewards, dones, infos = env.step(np.full((2,), 0, np.int64))",
        "env.step(np.full((2,), 0, np.int64))",
    ]


def test_each_call_is_in_the_journal_before_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    found = []

    class Reads(TinyVecEnv):
        def step_wait(self) -> Any:
            found.append(read_journal(path) if path.exists() else [])
            return super().step_wait()

    def scenario(scene: Scene) -> Iterator[Demand]:
        env = scene.make()
        env.restart(scene.seed())
        yield expect("{0}.any()", env.step([0, 0]).rewards, should="some")

    assert staged(scenario, Reads, programs=1, journal=str(path)).status == "passed"
    calls = ["env = make_env()", "env.seed(0)", "obs = env.reset()"]
    assert found[-1] == [*calls, "obs, rewards, dones, infos = env.step([0, 0])"]
    assert read_journal(path)[-1] == "env.close()"


def test_a_used_instance_accuses_nobody_and_a_new_one_does() -> None:
    class Remembers(TinyVecEnv):
        resets = 0

        def reset(self) -> Any:
            self.resets += 1
            return super().reset()

    def once(scene: Scene) -> Iterator[Demand]:
        scene.choose(range(9))
        env, _ = scene.start()
        yield expect("{0} == 1", env.attribute("resets"), should="the only reset")

    result = staged(once, Remembers, shared=True)
    assert (result.status, result.examples > 2) == ("passed", True)

    def never(scene: Scene) -> Iterator[Demand]:
        env, _ = scene.start()
        number = scene.choose(range(9))
        yield expect(f"{{0}} < {1 + (number == 0)}", env.attribute("resets"), should="none")

    assert staged(never, Remembers, shared=True).status == "failed"
