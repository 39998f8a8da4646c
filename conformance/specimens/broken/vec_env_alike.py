"""Mutants that are wrong in some rows, or in some resets, only; without single environments."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from conformance.specimens.points import Config, Point, Points
from conformance.specimens.registry import vec_env_mutant as mutant

# Rows that differ by their seeds only, and end together.
ALIKE = Config(lengths=(6,), ends=("truncated",))
NATIVE = "sub-environments out of reach"


class _Native(Points):
    """As a simulator that is stepped as a whole: it has no sub-environments."""

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError


@mutant("rows_are_alike", config=ALIKE, referenced=False)
class LastRowStandsStill(_Native):
    def step_row(self, i: int, action: Any) -> Any:
        if i < self.num_envs - 1:
            return super().step_row(i, action)
        return self.envs[i].unwrapped.observe(), 0.0, False, {"TimeLimit.truncated": False}


@mutant("rows_are_alike", config=ALIKE, referenced=False)
class DrawnRewardsInReverse(_Native):
    """Rewards that do not depend on actions, so that no action of another row shows."""

    def step_row(self, i: int, action: Any) -> Any:
        obs, _, done, info = super().step_row(i, action)
        return obs, float(self.envs[i].unwrapped.np_random.normal()), done, info

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards[::-1], dones, infos


@mutant("rows_independent", config=ALIKE, referenced=False)
class RewardsInReverse(_Native):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards[::-1].copy(), dones, infos


class _EndsTogether(_Native):
    """Knows which rows have ended in a step before any of them is reset."""

    def step_wait(self) -> Any:
        result = super().step_wait()
        rows = np.flatnonzero(result[2])
        if len(rows) > 1:
            self.several(rows, *result)
        return result

    def several(self, rows: Any, obs: Any, rewards: Any, dones: Any, infos: Any) -> None:
        raise NotImplementedError


@mutant("endings_together", config=ALIKE, referenced=False)
class OneResetForSeveralRows(_EndsTogether):
    def several(self, rows: Any, obs: Any, rewards: Any, dones: Any, infos: Any) -> None:
        obs[rows] = obs[rows[0]]


# The rows after the first one show their last observations.
@mutant("obs_after_done_is_reset_obs", config=ALIKE, referenced=False)
class OnlyTheFirstOfSeveralIsReset(_EndsTogether):
    def several(self, rows: Any, obs: Any, rewards: Any, dones: Any, infos: Any) -> None:
        for i in rows[1:]:
            obs[i] = infos[i]["terminal_observation"]


# The last observation then depends on the actions of another row.
@mutant("rows_independent", config=ALIKE, referenced=False)
class LastObservationsSwapped(_EndsTogether):
    def several(self, rows: Any, obs: Any, rewards: Any, dones: Any, infos: Any) -> None:
        lasts = [infos[i]["terminal_observation"] for i in rows]
        for i, last in zip(rows, reversed(lasts), strict=True):
            infos[i]["terminal_observation"] = last


class Falls(Point):
    """At its limit it may have fallen: its actions say so."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated or (truncated and self.point[0] > 3), truncated, info


# As a flag that is read by the place of its row among the ended ones.
@mutant("rows_independent", config=ALIKE, referenced=False)
class FlagsSwapped(_EndsTogether):
    row = Falls

    def several(self, rows: Any, obs: Any, rewards: Any, dones: Any, infos: Any) -> None:
        flags = [infos[i]["TimeLimit.truncated"] for i in rows]
        for i, flag in zip(rows, reversed(flags), strict=True):
            infos[i]["TimeLimit.truncated"] = flag


# The infos of its resets are drawn, too.
@mutant("obs_after_done_is_reset_obs", "reset_infos_updated_on_autoreset", referenced=False)
class AutoresetsSeedAgain(Points):
    last: Any = None

    def forget(self) -> None:
        self.last = list(self._seeds)
        super().forget()

    def autoreset(self, i: int) -> Any:
        return self.envs[i].reset(seed=self.last[i])


@mutant("autoreset_like_reset", config=Config(lengths=(7, 9, 11)), referenced=False)
class ResetsWithASeedOnly(Points):
    """Without one `reset` returns the observation of now, as its simulator resets itself."""

    def start(self, i: int) -> Any:
        if self._seeds[i] is None and self.envs[i].unwrapped.time:
            return self.envs[i].unwrapped.observe()
        return super().start(i)


@mutant("autoreset_like_reset", config=Config(observation="dict"), referenced=False)
class AutoresetLeavesTheCounter(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        return {**super().end(i, last, info), "count": last["count"]}


@mutant(
    "autoreset_like_reset",
    config=Config(observation="dict", lengths=(4, 6, 12)),
    referenced=False,
)
class ClearsOneRowInAStep(Points):
    """Of rows that end together only the first has its counter set back."""

    cleared = False

    def step_wait(self) -> Any:
        self.cleared = False
        return super().step_wait()

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        count = last["count"] if self.cleared else first["count"]
        self.cleared = True
        return {**first, "count": count}


@mutant("autoreset_like_reset", config=Config(observation="image"), referenced=False)
class ImagesOfZerosAfterEnds(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        return super().end(i, last, info) * 0


@mutant("autoreset_like_reset", config=Config(observation="image", lengths=(4,)), referenced=False)
class OneImageAfterEnds(Points):
    kept: Any = None

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.kept = first if self.kept is None else self.kept
        return self.kept.copy()


@mutant(
    "autoreset_like_reset",
    config=Config(lengths=(5,), ends=("truncated",)),
    referenced=False,
)
class TimeIsUpForGoodAfterAnEnd(Points):
    """Observations do not show the time."""

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.envs[i].unwrapped.time = 5
        return first


@mutant(
    "autoreset_like_reset",
    config=Config(lengths=(5,), ends=("terminated",)),
    referenced=False,
)
class HorizonIsShorterAfterAnEnd(Points):
    """Observations do not show the time."""

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.envs[i].unwrapped.time = 1
        return first


@mutant("terminal_observation_like_others", config=Config(lengths=(9,)), referenced=False)
class TerminalObservationNotNormalised(Points):
    def batch(self, observations: list[Any]) -> Any:
        return super().batch(observations) / np.float32(50)


@mutant(
    "terminal_observation_like_others",
    config=Config(lengths=(9,), ends=("terminated",)),
    referenced=False,
)
class TerminalObservationInMillimetres(Points):
    """All episodes terminate."""

    def batch(self, observations: list[Any]) -> Any:
        return super().batch(observations) / np.float32(1000)


@mutant(
    "terminal_observation_like_others",
    may_fail=("rows_independent", "rows_are_alike"),
    config=Config(lengths=(5, 4, 3)),
    referenced=False,
)
class LastObservationsOfTheFirstRows(Points):
    """The first row that has ended gets the one of row 0, and so on."""

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        led_to = [info.get("terminal_observation", obs[i]) for i, info in enumerate(infos)]
        for k, i in enumerate(np.flatnonzero(dones)):
            infos[i]["terminal_observation"] = led_to[k].copy()
        return obs, rewards, dones, infos


@mutant(
    "rows_independent",
    may_fail=("rows_are_alike",),
    config=Config(lengths=(4, 4, 3), ends=("terminated",)),
    referenced=False,
)
class ScoreOfTheLastThatEnds(Points):
    """Of rows that end in one step."""

    def step_wait(self) -> Any:
        result = super().step_wait()
        for i in np.flatnonzero(result[2])[-1:]:
            result[3][i]["score"] = 1.0
        return result


@mutant("last_reward_like_others", referenced=False)
class LastRewardsOfZero(Points):
    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, 0.0 if done else reward, done, info


@mutant("last_reward_like_others", referenced=False)
class RewardsOnTheWayToTheNextStart(Points):
    """The reward is how far the step has moved the point, by the observation that it returns."""

    def step_row(self, i: int, action: Any) -> Any:
        before = self.envs[i].unwrapped.observe()
        obs, _, done, info = super().step_row(i, action)
        return obs, float(obs[0] - before[0]), done, info


@mutant("reset_infos_updated_on_autoreset", may_fail=("done_info_is_step_info",), referenced=False)
class ResetInfosWithARoomOfTheLastStep(Points):
    """After a reset, and in the first step of an episode, it is 0."""

    def start(self, i: int) -> Any:
        obs = super().start(i)
        self.reset_infos[i]["room"] = 0
        return obs

    def step_row(self, i: int, action: Any) -> Any:
        self.room = self.envs[i].unwrapped.time % 3
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward, done, {**info, "room": self.room}

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.reset_infos[i]["room"] = self.room
        return first


@mutant("reset_infos_updated_on_autoreset", referenced=False)
class ResetInfosWithARoomOfAnEarlierReset(Points):
    """One of a few."""

    def start(self, i: int) -> Any:
        obs = super().start(i)
        self.reset_infos[i] = {"room": int(8 * abs(self.envs[i].unwrapped.point[0]))}
        return obs

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        before = self.reset_infos[i]
        first = super().end(i, last, info)
        self.reset_infos[i] = before
        return first


@mutant("reset_infos_updated_on_autoreset", referenced=False)
class ResetInfosWithTheMapOfTheLastStep(Points):
    """Each reset draws another map."""

    def start(self, i: int) -> Any:
        obs = super().start(i)
        self.reset_infos[i]["map"] = self.envs[i].unwrapped.point.copy()
        return obs

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        info["map"] = self.envs[i].unwrapped.point.copy()
        first = super().end(i, last, info)
        self.reset_infos[i]["map"] = info["map"]
        return first

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward, done, {"map": self.envs[i].unwrapped.point.copy(), **info}


@mutant("terminal_observation_is_last", config=Config(lengths=(9,)), referenced=False)
class TerminalObservationOfAnEarlierEpisode(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.earlier: dict[int, Any] = {}

    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return self.earlier.setdefault(i, last).copy()


@mutant("truncated_flag_exclusive", config=ALIKE, referenced=False)
class NoTruncationAtTheKnownTimeLimit(Points):
    def make_row(self, row: int) -> Any:
        env = super().make_row(row)
        made, limit = partial(Point, self.config, row), self.config.lengths[0]
        env.unwrapped.spec = EnvSpec("Point-v0", made, max_episode_steps=limit)
        return env

    def flag(self, terminated: bool, truncated: bool) -> Any:
        return False


@mutant("nothing_kept_over_ends", referenced=False)
class KeepsThePotential(Points):
    """Rewards have the difference of two potentials, and an autoreset sets none."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.potential = np.zeros(self.num_envs)

    def start(self, i: int) -> Any:
        obs = super().start(i)
        self.potential[i] = -np.linalg.norm(obs)
        return obs

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        before, now = self.potential[i], -np.linalg.norm(info.get("terminal_observation", obs))
        self.potential[i] = now
        return obs, reward + float(now - before), done, info
