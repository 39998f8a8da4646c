from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from conformance.specimens.broken.vector_env_basics import StaleResult
from conformance.specimens.broken.vector_env_long import RowsCounted
from conformance.specimens.broken.vector_env_resets import IgnoresSeeds
from conformance.specimens.rows_env import MODES, Form, RowEnv, RowsEnv, reference
from conformance.specimens.worlds import Kind, World
from conformance.specimens.worlds_in_rows import WorldsVectorEnv
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.subject.examine import examine
from tests.conformance.checks.test_mutants import CLOSES
from tests.conformance.kit import bad, judge
from tests.profiles import some


def look(factory: Callable[[], Any], **given: Any) -> dict[str, Result]:
    """The results of a new environment, in which even a slow machine finds an end of an episode."""
    names = ("seconds", "only", "seed", "thorough", "thorough_seconds")
    run = {name: given.pop(name) for name in names if name in given}
    return judge(examine(factory, seconds=60, **given), **run)


# The checks of rows that differ by their seeds only.
ALIKE = ("rows_are_alike", "endings_together")
# And of those that wrap another one.
WRAPPED = ("close_closes_what_it_wraps",)
# And of those that have a monitor.
COUNTED = ("episode_statistics_of_the_episode",)
# And of entries that only some rows have. In DISABLED mode the resets give no such entries.
PARTIAL = ("infos_without_others_entries",)
# And of what an end may hide, where episodes are short.
LATE = ("no_stale_result_after_error",)
# And of states that are seen again and again.
TERMINAL = ("terminal_states_terminate",)


class TellsWhenEven(RowsEnv):
    def add_info(self, infos: dict[str, Any], info: dict[str, Any], i: int) -> dict[str, Any]:
        even = {"even": True} if int(info.get("x", 1)) % 2 == 0 else {}
        return super().add_info(infos, info | even, i)


def corner(row: int) -> World:
    return World(Kind(size=2, limit=3), row)


def test_a_correct_environment_exercises_every_check() -> None:
    for mode in some(MODES):
        given = {"reference": reference(Form(mode=mode)), "options": {"offset": 100}}
        results = look(lambda mode=mode: RowsEnv(Form(mode=mode)), seconds=0.03, **given)
        alike = Form(mode, (6,), kind="counted", steady=True)
        more = look(lambda alike=alike: RowsEnv(alike), seconds=0.03, only=ALIKE)
        more |= look(lambda mode=mode: RowsCounted(Form(mode=mode)), seconds=0.03, only=COUNTED)
        more |= look(lambda mode=mode: TellsWhenEven(Form(mode=mode)), seconds=0.03, only=PARTIAL)
        more |= look(
            lambda mode=mode: VectorWrapper(RowsEnv(Form(mode=mode))), seconds=0.03, only=WRAPPED
        )
        more |= look(lambda mode=mode: WorldsVectorEnv(corner, mode, 3), only=TERMINAL)
        long = Form(mode=mode, lengths=(12,))
        more |= look(lambda long=long: RowsEnv(long), seconds=0.03, only=LATE)
        passed = {name for name, each in (results | more).items() if each.status == "passed"}
        assert passed | CLOSES == set(results), mode


class CountsObservations(RowsCounted):
    """Of which an episode has one more than steps."""

    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(rows, masked)
        self.counts[rows] = 1

    def over(self, i: int) -> None:
        super().over(i)
        self.counts[i] = 1


def test_statistics_of_something_else_are_noted_and_left_alone() -> None:
    results = look(lambda: CountsObservations(Form(mode="NextStep")), seconds=0.3, only=COUNTED)
    (result,) = results.values()
    assert result.status == "partly_exercised"
    assert "'l' is not the number of its steps in" in result.message


class Outside(gym.ObservationWrapper[Any, Any, Any]):
    def observation(self, observation: Any) -> Any:
        return observation + 1000


def test_observations_out_of_bounds_fail_one_check_only() -> None:
    fns = [lambda: Outside(gym.make("CartPole-v1"))] * 2
    results = look(
        lambda: SyncVectorEnv(fns, autoreset_mode="SameStep"),
        only=["obs_in_batched_space", "final_obs_in_space"],
    )
    assert results["obs_in_batched_space"].status == "failed"
    assert results["final_obs_in_space"].status == "skipped"


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_rows_that_stay_where_they_begin_seem_to_heed_no_mask(mode: str) -> None:
    """As in CliffWalking: each episode begins in one place, and a step may lead nowhere."""

    class Walk(RowEnv):
        def reset(self, **kwargs: Any) -> Any:
            super().reset(**kwargs)
            self.x = 0.0
            return self.observe(), {}

        def step(self, action: Any) -> Any:
            x = self.x
            _, reward, *flags, info = super().step(action)
            self.x = x + (action == 2)
            return self.observe(), reward, *flags, info

    class Walks(RowsEnv):
        def make_row(self, i: int) -> RowEnv:
            return Walk(self.form, i)

    shape = Form(mode=mode, kind="discrete", masks=False, lengths=(100,))
    assert not examine(lambda: Walks(shape)).capabilities["masked_reset"]
    shape = replace(shape, masks=True)
    assert examine(lambda: Walks(shape)).capabilities["masked_reset"]


class MakesMetadataEachTime(SyncVectorEnv):
    """Its metadata are made when they are asked for: nothing that another writes is in them."""

    @property
    def metadata(self) -> dict[str, Any]:
        return {"autoreset_mode": self.autoreset_mode}

    @metadata.setter
    def metadata(self, value: dict[str, Any]) -> None:
        pass


def test_metadata_made_anew_at_each_look_are_shared_with_nobody() -> None:
    fns = [lambda: gym.make("CartPole-v1")] * 2
    results = look(lambda: MakesMetadataEachTime(fns), only=("metadata_not_shared",))
    assert results["metadata_not_shared"].status == "passed"


class SeveralRewards(RowsEnv):
    """Two rewards a row; it resets in the next step, and says that it does in the same one."""

    def __init__(self) -> None:
        super().__init__(Form(mode="NextStep"))
        self.autoreset_mode = AutoresetMode("SameStep")
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}

    def step(self, actions: Any) -> Any:
        obs, rewards, *rest = super().step(actions)
        return obs, np.stack([rewards, rewards], axis=1), *rest


def test_rewards_of_a_wrong_shape_are_told_by_their_own_check_alone() -> None:
    results = look(SeveralRewards, only=("rewards_shape", "autoreset_mode_matches_behaviour"))
    assert results["rewards_shape"].status == "failed"
    assert results["autoreset_mode_matches_behaviour"].status == "passed"


class Board(gym.Env[Any, Any]):
    """Begins empty, or with one of a few moves of the opponent; a row may have a clock of its own.

    Args:
        limit: The time limit, as which the clock counts.
        size: The bound of the observations.
    """

    action_space = gym.spaces.Discrete(2)

    def __init__(self, limit: int = 4, size: int = 8) -> None:
        self.limit = limit
        self.observation_space = gym.spaces.Box(0, size, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.move = self.np_random.integers(1, 6) if self.np_random.random() < 0.5 else 0
        self.time = 0
        return self.look(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        over = bool(action == self.move)
        return self.look(), 1.0, over, self.time >= self.limit, {}

    def look(self) -> Any:
        # It fills its space, whatever that is.
        scale = self.observation_space.high[0] / 8  # type: ignore[attr-defined]
        return np.array([self.move * scale, 8 * scale * self.time / self.limit], np.float32)


def test_a_start_that_is_half_of_all_starts_heeds_seeds() -> None:
    env = partial(SyncVectorEnv, [Board] * 3)
    for seed in some(range(20), 2):
        assert not bad(look(env, seed=seed, only=("seed_list_by_row", "seeds_differ_by_row")))


def test_rows_with_time_limits_of_their_own_may_end_at_once() -> None:
    for seed in some(range(20), 2):
        assert not bad(
            look(lambda: SyncVectorEnv([Board, lambda: Board(7)]), seed=seed, only=ALIKE)
        )


def test_rows_with_bounds_of_their_own_end_inside_them() -> None:
    def make() -> SyncVectorEnv:
        fns = [lambda: Board(size=1), lambda: Board(size=8)]
        mode = AutoresetMode.SAME_STEP
        return SyncVectorEnv(fns, observation_mode="different", autoreset_mode=mode)

    result = look(make, only=("final_obs_in_space",))["final_obs_in_space"]
    assert result.status == "passed"


class ZeroIsNoSeed(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return [each or None for each in super().seeds(seed)]


@pytest.mark.parametrize(("factory", "alone"), [(ZeroIsNoSeed, True), (IgnoresSeeds, False)])
def test_where_the_seed_zero_alone_does_not_repeat_that_is_said(factory: Any, alone: bool) -> None:
    name = "same_seed_same_trajectory"
    message = look(partial(factory, Form()), seconds=0.1, only={name})[name].message
    assert ("Other seeds repeat: is 0 taken for no seed" in message) == alone, message


class LevelAtTheSecondEnd(RowsEnv):
    """Rows begin elsewhere from their second end on, also after a seed."""

    def make_row(self, i: int) -> RowEnv:
        class Row(RowEnv):
            ends = 0

            def reset(self, *, seed: Any = None, options: Any = None) -> Any:
                self.ends += seed is None
                _, info = super().reset(seed=seed, options=options)
                self.x += 5 * (self.ends >= 2)
                return self.observe(), info

        return Row(self.form, i)


def test_a_level_that_outlasts_a_seed_is_no_generator_that_goes_on() -> None:
    name = "seed_works_again"
    result = look(partial(LevelAtTheSecondEnd, Form("SameStep")), seconds=0.3, only={name})[name]
    assert result.status == "passed", result.message


class LateAndStepsOn(StaleResult):
    """As `AsyncVectorEnv` does, it steps rows that have ended, too."""

    def refuse_ended(self) -> None:
        self.pending[:] = False


def test_a_late_result_is_not_passed_where_episodes_are_short() -> None:
    for lengths in ((1,), (1, 2), (2, 3), (2, 4)):
        form, only = Form("Disabled", lengths), ("no_stale_result_after_error",)
        [result] = look(lambda form=form: LateAndStepsOn(form), seconds=0.2, only=only).values()
        assert result.status != "passed"
