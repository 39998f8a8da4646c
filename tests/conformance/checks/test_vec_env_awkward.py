"""Environments that are correct, and look as if they were not."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from conformance.specimens.broken.vec_env_episodes import LastFramesOfTheEpisodeBefore
from conformance.specimens.points import OPTIONS, Config, Point, Points
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.subject.examine import examine
from tests.conformance.kit import TRAINING, broken, judge
from tests.profiles import nightly, some


class Rows(Points):
    """Points whose rows are of another class."""

    row_class: type[Point] = Point

    def make_row(self, row: int) -> Any:
        return self.row_class(self.config, row)


class StaysWhereItIs(Point):
    """A reset moves nothing, as with a real robot: the last observation is the next first one."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        before = self.point
        _, info = super().reset(seed=seed, options=options)
        if seed is None:
            self.point = np.clip(before, -40, 40)  # what walks on for ever leaves its space
        return self.observe(), info


class LosesLives(Point):
    """The end of a life is the end of an episode, and the next one goes on at the same place."""

    lives = 3

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        before, self.lives = self.point, self.lives - 1
        over = 0 < self.time < self.config.lengths[self.row % len(self.config.lengths)]
        _, info = super().reset(seed=seed, options=options)
        if seed is None and self.lives and not over:
            self.point = before
        elif not self.lives:
            self.lives = 3
        return self.observe(), info


class ClimbsLevels(Point):
    """The start is the same until a level is done."""

    level = 0

    def reset(self, **kwargs: Any) -> Any:
        _, info = super().reset(**kwargs)
        self.point = np.full(3, min(self.level, 40), float)
        return self.observe(), info

    def step(self, action: Any) -> Any:
        result = super().step(action)
        self.level += bool(result[2])
        return result


class TellsAtTheEnd(Point):
    """The info of the last step is the one of a reset, as both tell the same."""

    def reset(self, **kwargs: Any) -> Any:
        return super().reset(**kwargs)[0], {"is_success": False}

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, _ = super().step(action)
        return obs, reward, terminated, truncated, {"is_success": False} if terminated else {}


class _Thing:
    """Says of no other that it is the same, or fails to say anything."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("it cannot be compared")

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("it cannot be copied")


class TellsAllSorts(Point):
    """Infos with what cannot be compared or copied, and with the time of day."""

    def told(self) -> dict[Any, Any]:
        ragged: Any = [[1], [1, 2]]
        words = {"text": "x", "none": None, "set": {1, 2}, "ragged": ragged, 5: "five"}
        numbers = {"nan": np.nan, "day": np.datetime64("2020-01-01"), "clock": next(_CLOCK)}
        return {**words, **numbers, "object": object(), "thing": _THING, "call": lambda: 3}

    def reset(self, **kwargs: Any) -> Any:
        obs, info = super().reset(**kwargs)
        return obs, {**info, **self.told()}

    def step(self, action: Any) -> Any:
        *result, info = super().step(action)
        return *result, {**info, **self.told()}


_CLOCK, _THING = count(), _Thing()


ROWS = (StaysWhereItIs, LosesLives, ClimbsLevels, TellsAtTheEnd, TellsAllSorts)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
@pytest.mark.parametrize("rows", [1, 3])
def test_an_awkward_row_passes(row: type[Point], rows: int) -> None:
    for seed in some((0, 1)):
        kind = type(row.__name__, (Rows,), {"row_class": row})
        found = broken(lambda kind=kind: kind(Config(rows=rows)), 0.01, seed=seed, skip=TRAINING)
        # What an earlier episode leaves behind shows in the next one, under a seed, too.
        if row in (ClimbsLevels, LosesLives):
            found.pop("reset_starts_fresh_episodes", None)
        assert not found


@pytest.mark.parametrize("beside", [False, True])
def test_odd_infos_pass(beside: bool) -> None:
    kind = type("TellsAllSorts", (Rows,), {"row_class": TellsAllSorts})
    singles = [partial(TellsAllSorts, Config(), row) for row in range(3)] if beside else None
    assert not broken(kind, 0.05, skip=TRAINING, options=OPTIONS, reference=singles)
    for mode in AutoresetMode:
        report = run(
            lambda mode=mode: SyncVectorEnv(
                singles or [partial(TellsAllSorts, Config(), 0)] * 3, autoreset_mode=mode
            ),
            options=Options(
                programs=8 if nightly() else 2, isolate=False, options=OPTIONS, reference=singles
            ),
        )
        found = {r.check_id: r.message for r in report.failures()}
        assert not found


def test_dropped_options_show_even_if_infos_contain_clock_times() -> None:
    class NoOptions(TellsAllSorts):
        def reset(self, **kwargs: Any) -> Any:
            return super().reset(seed=kwargs.get("seed"))

    name = "options_reach_env"
    kind = type("NoOptions", (Rows,), {"row_class": NoOptions})
    options = Options(isolate=False, options=OPTIONS, only=(name,), programs=2)
    for factory in (kind, lambda: SyncVectorEnv([partial(NoOptions, Config(), 0)] * 3)):
        assert [r.check_id for r in run(factory, options=options).failures()] == [name]


class Falls(Point):
    """A dice decides when."""

    def step(self, action: Any) -> Any:
        obs, reward, _, _, info = super().step(action)
        return obs, reward, bool(self.np_random.random() < 0.15), False, info


class Limited(Rows):
    """Truncates episodes, by a counter that goes on over terminations or does not."""

    row_class = Falls

    def __init__(self, goes_on: bool) -> None:
        super().__init__(Config())
        self.goes_on, self.spent = goes_on, [0] * self.num_envs

    def reset(self) -> Any:
        self.spent = [0] * self.num_envs
        return super().reset()

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, terminated, _, info = self.envs[i].step(action)
        self.spent[i] += 1
        cut = info["TimeLimit.truncated"] = self.spent[i] >= 8 + i and not terminated
        if terminated or cut:
            obs = self.end(i, obs, info)
            self.spent[i] *= terminated and self.goes_on
        return obs, reward, terminated or cut, info


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_limit_that_goes_on_over_terminations_is_noted(goes_on: bool) -> None:
    """It may be a budget for several lives: no failure."""
    name = "limits_by_row"
    subject = examine(partial(Limited, goes_on))
    result = judge(subject, seconds=0.3, only=[name])[name]
    assert result.status == ("partly_exercised" if goes_on else "passed")
    assert ("8 steps after the last truncation or reset" in result.message) == goes_on


class NoneInRunningRows(Points):
    """Has the keys in all rows, as a bridge that fills in what the others have."""

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward, done, {"terminal_observation": None, "episode": None, **info}


def test_none_is_no_entry() -> None:
    names = ["terminal_observation_iff_done", "episode_statistics_at_end_only"]
    results = judge(examine(NoneInRunningRows), seconds=0.3, only=names)
    assert {results[name].status for name in names} == {"passed"}


class Clipped(Points):
    """A monitor below a wrapper that clips rewards; sums of small numbers are often equal."""

    def __init__(self) -> None:
        super().__init__(Config(rows=32, lengths=(5, 9, 7, 11)))
        self.rewards: list[list[int]] = [[] for _ in self.envs]

    def reset(self) -> Any:
        self.rewards = [[] for _ in self.envs]
        return super().reset()

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        self.rewards[i].append(int(abs(reward) * 2) % 3)
        last = min(self.rewards[i][-1], 1)
        if done:
            told, self.rewards[i] = self.rewards[i], []
            info["episode"] = {"r": float(sum(told)), "l": len(told), "t": 0.1}
        return obs, float(last), done, info


class FellOrNot(Points):
    """Row 0 falls, and says so. Row 1 is cut, always in a step in which row 0 falls."""

    def __init__(self) -> None:
        super().__init__(Config(rows=2, lengths=(3, 6), ends=("terminated", "truncated")))

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward, done, {**info, "fell": True} if done and i == 0 else info


class OneForEachStep(Points):
    """But for the last one."""

    def step_row(self, i: int, action: Any) -> Any:
        obs, _, done, info = super().step_row(i, action)
        return obs, float(not done), done, info


@pytest.mark.parametrize(
    ("factory", "name", "status"),
    [
        (Clipped, "episode_statistics_of_the_episode", "partly_exercised"),
        (FellOrNot, "rows_independent", "partly_exercised"),
        (OneForEachStep, "last_reward_like_others", "not_exercised"),
    ],
)
def test_what_may_be_by_design_or_chance(factory: Any, name: str, status: str) -> None:
    assert judge(examine(factory), seconds=1, only=[name])[name].status == status


class GameOver(LastFramesOfTheEpisodeBefore):
    """Half of the episodes end with one picture, the others with their own last frames."""

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        self.push(i, last)
        stack = self.shown(i)
        if self.envs[i].np_random.random() < 0.5:
            stack[:] = 7
        first = Points.end(self, i, stack, info)
        self.age[i] = 0
        return self.push(i, first)


def test_a_picture_that_ends_episodes_is_no_frame_of_the_one_before() -> None:
    name = "terminal_observation_like_others"
    subject = examine(lambda: GameOver(Config(lengths=(2, 3, 9))))
    assert judge(subject, seconds=1, only=[name])[name].status == "passed"
