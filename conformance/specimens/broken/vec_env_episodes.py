"""Mutants: the end of an episode, and rows that show in others."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.points import Config, Kept, Points
from conformance.specimens.registry import vec_env_mutant as mutant

# The end of an episode


@mutant("terminal_observation_iff_done")
class NoTerminalObservation(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        del info["terminal_observation"]
        return first


@mutant("terminal_observation_iff_done")
class TerminalObservationAlways(Points):
    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        info.setdefault("terminal_observation", deepcopy(obs))
        return obs, reward, done, info


@mutant("terminal_observation_in_space")
class TerminalObservationIsABatch(Points):
    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return last[None]


@mutant("terminal_observation_dtype")
class TerminalObservationInDoublePrecision(Points):
    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return last.astype(np.float64)


# A view of the row, which then is overwritten: it has the value of the reset observation now, and
# changes with whatever is written to that array.
@mutant("terminal_observation_not_reset_obs", "terminal_observation_not_aliased")
class TerminalObservationIsAView(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = obs[i]
        return obs, rewards, dones, infos


@mutant("terminal_observation_not_reset_obs")
class TerminalObservationIsTheNextFirst(Points):
    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return deepcopy(first)


@mutant("terminal_observation_is_last")
class TerminalObservationIsStale(Points):
    def step_row(self, i: int, action: Any) -> Any:
        before = self.envs[i].unwrapped.observe()
        obs, reward, done, info = super().step_row(i, action)
        if done:
            info["terminal_observation"] = before
        return obs, reward, done, info


@mutant("terminal_observation_is_last")
class TerminalObservationOfZeros(Points):
    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return last * 0


@mutant("terminal_observation_is_last")
class TerminalObservationOfAnotherRow(Points):
    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return self.envs[i - 1].unwrapped.observe()


@mutant("truncated_flag_present")
class NoTruncatedFlagAtTerminations(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        if not info["TimeLimit.truncated"]:
            del info["TimeLimit.truncated"]
        return super().end(i, last, info)


_FLAGS = "an episode may be truncated or terminate in any state: only its own flags say which"


class _Flags(Points):
    """Sets the flag where an episode ends, and nowhere else."""

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        if not done:
            info["TimeLimit.truncated"] = False
        return obs, reward, done, info


@mutant("truncated_flag_exclusive", untold=_FLAGS)
class TruncatedFlagAlways(_Flags):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return True


@mutant("truncated_flag_exclusive", untold=_FLAGS)
class TruncatedFlagNever(Points):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return False


# Harmless at terminations, and a lost truncation otherwise.
@mutant("truncated_flag_present", "truncated_flag_exclusive")
class NoTruncatedFlag(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        del info["TimeLimit.truncated"]
        return super().end(i, last, info)


@mutant("truncated_flag_exclusive", untold=_FLAGS)
class TruncatedAlthoughTerminated(Points):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return truncated


@mutant("truncated_flag_exclusive", referenced=False)
class TruncatedAlthoughTerminatedByItsRows(TruncatedAlthoughTerminated, Kept):
    """A list of single environments says what its rows should do."""


@mutant("truncated_flag_at_truncations_only", referenced=False)
class TruncatedAlthoughItSaysTerminated(Points):
    terminated = False

    def flag(self, terminated: bool, truncated: bool) -> Any:
        self.terminated = terminated
        return truncated

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward, done, {**info, "terminated": self.terminated}


@mutant("truncated_flag_at_truncations_only")
class TruncatedAlthoughRunning(Points):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return not terminated


@mutant("truncated_flag_is_bool")
class TruncatedFlagIsANumber(Points):
    def flag(self, terminated: bool, truncated: bool) -> Any:
        return float(truncated and not terminated)


@mutant("obs_after_done_is_reset_obs")
class ObsAfterDoneIsTheLast(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        super().end(i, last, info)
        return last.copy()


@mutant("obs_after_done_is_reset_obs")
class ObsAfterDoneIsZeros(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        return super().end(i, last, info) * 0


@mutant("reset_infos_updated_on_autoreset")
class ResetInfosOfTheFirstEpisode(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        before = self.reset_infos[i]
        first = super().end(i, last, info)
        self.reset_infos[i] = before
        return first


@mutant("reset_infos_others_unchanged")
class ResetInfosMadeAnew(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.reset_infos = [{} if j != i else old for j, old in enumerate(self.reset_infos)]
        return first


@mutant("reset_infos_updated_on_autoreset")
class ResetInfosOfTheLastStep(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.reset_infos[i] = info
        return first


@mutant("episode_statistics_at_end_only")
class StatisticsInEachStep(Points):
    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward, done, {**info, "episode": {"r": 1.0, "l": 3, "t": 0.1}}


@mutant("episode_statistics_at_end_only")
class StatisticsNeverCleared(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.told: dict[int, Any] = {}

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        if done:
            self.told[i] = {"r": 1.0, "l": 3, "t": 0.1}
        return obs, reward, done, info | ({"episode": self.told[i]} if i in self.told else {})


@mutant("done_info_is_step_info")
class DoneInfoIsResetInfo(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        kept = {key: info[key] for key in ("terminal_observation", "TimeLimit.truncated")}
        info.clear()
        info.update(deepcopy(self.reset_infos[i]) | kept)
        return first


# Truncated, its later episodes would show to be a step longer, too.
@mutant("no_phantom_transition", config=Config(ends=("terminated", "both")))
class IgnoresTheActionAfterAnEnd(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ended = [False] * self.num_envs

    def start(self, i: int) -> Any:
        self.ended[i] = False
        return super().start(i)

    def step_row(self, i: int, action: Any) -> Any:
        if self.ended[i]:
            self.ended[i] = False
            obs = self.envs[i].unwrapped.observe()
            return obs, 0.0, False, {"time": 0, "TimeLimit.truncated": False}
        row = super().step_row(i, action)
        self.ended[i] = row[2]
        return row


@mutant("rows_independent")
class OthersFreezeWhileOneResets(Points):
    def step_wait(self) -> Any:
        ending = [env.unwrapped.time + 1 >= self.length(i) for i, env in enumerate(self.envs)]
        self.frozen = {i for i, end in enumerate(ending) if any(ending) and not end}
        return super().step_wait()

    def length(self, i: int) -> int:
        return self.config.lengths[i % len(self.config.lengths)]

    def step_row(self, i: int, action: Any) -> Any:
        if i in self.frozen:
            obs = self.envs[i].unwrapped.observe()
            return obs, 0.0, False, {"time": 0, "TimeLimit.truncated": False}
        return super().step_row(i, action)


@mutant(
    "rows_independent",
    untold="a row may go back to the middle at that time: only its single environment says not",
)
class OneEndEndsAll(Points):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        for j, env in enumerate(self.envs):
            if j > i:
                env.unwrapped.point = env.unwrapped.point * 0
        return super().end(i, last, info)


# As in a simulator that is stepped as a whole: it has no sub-environments. Without a reference,
# `rows_independent` sees that row i heeds the actions of others.
@mutant("rows_match_reference")
class ActionsInReverse(Points):
    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def step_async(self, actions: Any) -> None:
        super().step_async(actions[::-1])


@mutant("rows_match_reference", may_fail=("nothing_kept_over_ends",))
class RewardsRolled(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, np.roll(rewards, 1), dones, infos


@mutant("terminal_observation_like_others", config=Config(lengths=(2, 3, 9)), referenced=False)
class LastFramesOfTheEpisodeBefore(Points):
    """A stack of four observations, zeros at first, in a ring that is cleared for each result.

    That is forgotten for last observations; rows draw how long their episodes are.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.observation_space = spaces.Box(-50, 50, (4, 3), np.float32)
        self.ring = np.zeros((self.num_envs, 4, 3), np.float32)
        self.age = [0] * self.num_envs

    def push(self, i: int, obs: Any) -> Any:
        self.ring[i] = np.roll(self.ring[i], -1, axis=0)
        self.ring[i, -1] = obs
        self.age[i] += 1
        return self.shown(i)

    def shown(self, i: int) -> Any:
        stack = self.ring[i].copy()
        stack[: max(4 - self.age[i], 0)] = 0
        return stack

    def start(self, i: int) -> Any:
        self.ring[i], self.age[i] = 0, 0
        return self.push(i, super().start(i))

    def step_row(self, i: int, action: Any) -> Any:
        row = self.envs[i].unwrapped
        if self.age[i] == 1 and row.np_random.random() < 0.5:
            row.time = max(row.time, row.config.lengths[i] - 2)
        obs, reward, done, info = super().step_row(i, action)
        return (obs if done else self.push(i, obs)), reward, done, info

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        self.push(i, last)
        first = super().end(i, self.ring[i].copy(), info)
        self.age[i] = 0
        return self.push(i, first)
