"""VecEnv mutants whose mistake shows in several episodes together."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.broken.vec_env_alike import Falls
from conformance.specimens.points import Config, Points
from conformance.specimens.registry import vec_env_mutant
from conformance.specimens.worlds import CutInTheCorner, CutInTheCornerWithAClock, Drifter
from conformance.specimens.worlds_in_rows import Masked

_TERMINATED = Config(lengths=(3, 4, 5), ends=("terminated",))


class _Stacked(Points):
    """Observations are stacks of three frames of one number."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.frames = [deque(np.zeros(3), 3) for _ in self.envs]

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        if new:
            self.frames[i].extend(np.zeros(3))
        self.frames[i].append(obs[0])
        return np.array(self.frames[i], np.float32)


@vec_env_mutant("terminal_observation_like_others", referenced=False, config=_TERMINATED)
class TerminalStackWithoutTheLastFrame(_Stacked):
    def step_row(self, i: int, action: Any) -> Any:
        self.before = np.array(self.frames[i], np.float32)
        return super().step_row(i, action)

    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return self.before


_CUT = Config(lengths=(6,), ends=("truncated",))


@vec_env_mutant("autoreset_like_reset", referenced=False, config=_CUT)
class OldPicturesAfterTruncations(Points):
    """Stacks of three pictures of a dot, which only terminations clear."""

    row = Falls
    cut = False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)
        self.pictures = np.zeros((self.num_envs, 8, 8, 3), np.uint8)

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        if new and not self.cut:
            self.pictures[i] = 0
        self.pictures[i] = np.roll(self.pictures[i], -1, axis=-1)
        self.pictures[i, ..., -1] = 0
        self.pictures[i, int(9 * obs[0]) % 8, int(9 * obs[1]) % 8, -1] = 255
        return self.pictures[i].copy()

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        self.cut = info["TimeLimit.truncated"]
        first = super().end(i, last, info)
        self.cut = False
        return first


class _Grid(Points):
    """Each row walks along a line of places, from a drawn one, and is cut after some steps."""

    starts = 4

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.observation_space = spaces.Discrete(40)
        self.places = [0] * self.num_envs

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        dice = self.envs[i].np_random
        walked = dice.integers(self.starts) if new else self.places[i] + dice.integers(1, 5)
        self.places[i] = int(walked)
        return np.int64(self.places[i])


_GRID = Config(lengths=(4, 5, 6), ends=("truncated",))


class Pictures(_Grid):
    """Pictures of a dot that its actions move, channels first."""

    def __init__(self, config: Config = _GRID) -> None:
        super().__init__(config)
        self.observation_space = spaces.Box(0, 255, (3, 4, 8), np.uint8)

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        if new:
            super().observed(i, obs, new=True)
        return self.shown(self.picture(i))

    def picture(self, i: int) -> Any:
        found = np.full((4, 8, 3), (0, 60, 30), np.uint8)
        found[0, self.places[i] % 8, 0] = 255
        return found

    def shown(self, picture: Any) -> Any:
        return picture.transpose(2, 0, 1)

    def last(self, picture: Any) -> Any:
        return self.shown(picture)

    def step_row(self, i: int, action: Any) -> Any:
        self.places[i] += 1 + int(action)
        return super().step_row(i, action)

    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return self.last(last.transpose(1, 2, 0))


@vec_env_mutant("terminal_observation_like_others", referenced=False, config=_GRID)
class TerminalPictureReshaped(Pictures):
    def last(self, picture: Any) -> Any:
        return picture.reshape(3, 4, 8)


@vec_env_mutant("terminal_observation_like_others", referenced=False, config=_GRID)
class TerminalPlaceIsTheNextFirst(_Grid):
    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return first


@vec_env_mutant("terminal_observation_like_others", referenced=False, config=_GRID)
class TerminalPlaceIsTheOnlyFirst(TerminalPlaceIsTheNextFirst):
    starts = 1


@vec_env_mutant(
    "terminal_observation_not_reset_obs",
    referenced=False,
    config=Config(lengths=(8,), ends=("truncated",)),
)
class TruncatedEpisodesEndWithTheNextFirst(Points):
    """Episodes also terminate, and those ends are right."""

    row = Falls

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        if info["TimeLimit.truncated"]:
            info["terminal_observation"] = first.copy()
        return first


@vec_env_mutant(
    "terminal_observation_like_others",
    referenced=False,
    config=Config(lengths=(8,), ends=("truncated",)),
)
class TerminationsNotNormalised(Points):
    """Truncated episodes are."""

    row = Falls

    def batch(self, observations: list[Any]) -> Any:
        return super().batch(observations) / np.float32(1000)

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        if info["TimeLimit.truncated"]:
            info["terminal_observation"] = last / np.float32(1000)
        return first


class Speeds(Points):
    """Its speed is observed, too; it is 0 after each reset."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config or Config(continuous=True, lengths=(3, 4, 5)))
        self.observation_space = spaces.Box(-50, 50, (4,), np.float32)
        self.speed: Any = np.float32(0)

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        return np.append(obs, np.float32(0) if new else self.speed)

    def step_row(self, i: int, action: Any) -> Any:
        self.speed = np.float32(np.mean(action))
        return super().step_row(i, action)


@vec_env_mutant("autoreset_like_reset", referenced=False, config=Config(continuous=True))
class StepsOnAfterSomeEnds(Speeds):
    """As a wrapper that repeats actions, and does not look at what ends before the last time."""

    ends = 0

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.ends += 1
        if self.holds():
            return first
        row = self.envs[i].unwrapped
        obs = row.step(np.full(2, self.speed / 2))[0]
        row.time = 0  # the limit is another matter
        return np.append(obs, self.speed / 2)

    def holds(self) -> bool:
        """Whether an end is in the last of the times for which the action is repeated."""
        return self.ends % 3 == 0


@vec_env_mutant("autoreset_like_reset", referenced=False, config=Config(continuous=True))
class StepsOnAfterFewEnds(StepsOnAfterSomeEnds):
    """Too few in each row to be told from chance."""

    def holds(self) -> bool:
        return self.ends % 3 != 0


@vec_env_mutant("autoreset_like_reset", referenced=False, config=Config(lengths=(3, 4, 5)))
class ClockRunsOnAfterSomeEnds(Points):
    """As that of a wrapper that repeats actions over an end; it has few values there."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.observation_space = spaces.Box(-50, 50, (4,), np.float32)
        self.clock = np.zeros(self.num_envs, np.float32)

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        self.clock[i] = 0 if new else self.clock[i] + 0.125
        return np.append(obs, self.clock[i])

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.clock[i] = first[-1] = round(1000 * float(abs(last[0]))) % 3 / 8
        return first


@vec_env_mutant(
    "terminal_observation_like_others",
    referenced=False,
    config=Config(lengths=(4, 5, 6), ends=("truncated",)),
)
class TerminalGoalOfTheNextEpisode(Points):
    """Observations end with a goal, which is drawn for each episode."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.observation_space = spaces.Box(-50, 50, (4,), np.float32)
        self.goals = [0] * self.num_envs

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        if new:
            self.goals[i] = int(self.envs[i].np_random.integers(5))
        return np.append(obs, np.float32(self.goals[i]))

    def terminal(self, i: int, last: Any, first: Any) -> Any:
        return np.append(last[:-1], first[-1])


@vec_env_mutant("seed_used_once", referenced=False, config=_GRID)
class SeedForGoodAmongFewStarts(_Grid):
    starts = 13

    def forget(self) -> None:
        self._options = [{} for _ in self.envs]


@vec_env_mutant("infos_without_old_entries", may_fail=("rows_independent",))
class TellsEndsInTheFirstRows(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        for k, _ in enumerate(np.flatnonzero(dones)):
            infos[k] |= {"score": 1.0}
        return obs, rewards, dones, infos


@vec_env_mutant("infos_without_old_entries")
class SuccessIsLeftOver(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.old: list[dict[str, Any]] = [{} for _ in self.envs]

    def reset(self) -> Any:
        self.old = [{} for _ in self.envs]
        return super().reset()

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        old, self.old[i] = self.old[i], {"is_success": reward > 0} if done else {}
        return obs, reward, done, {**info, **old, **self.old[i]}


@vec_env_mutant("infos_without_others_entries")
class EmptyEntriesOfOtherRows(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        events = [i for i, info in enumerate(infos) if info.get("time") == 2]
        for i, info in enumerate(infos) if events else ():
            info["event"] = "half time" if i in events else None
        return obs, rewards, dones, infos


@vec_env_mutant("infos_without_others_entries")
class ZerosInOtherRows(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        found = [i + 1 if info.get("time") == 2 else 0 for i, info in enumerate(infos)]
        for info, gems in zip(infos, found, strict=True) if any(found) else ():
            info["gems"] = gems
        return obs, rewards, dones, infos


@vec_env_mutant("rows_independent", referenced=False)
class InfosOfOtherRowsLostAtEnds(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        for i in np.flatnonzero(~dones) if dones.any() else ():
            infos[i] = {"TimeLimit.truncated": False}
        return obs, rewards, dones, infos


@vec_env_mutant("rows_independent", referenced=False)
class StatisticsOfTheLastRow(Points):
    """One dict for all rows, which each of them writes into."""

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        for info in infos:
            info["statistics"] = {"reward": float(rewards[-1]), "square": float(rewards[-1]) ** 2}
        return obs, rewards, dones, infos


@vec_env_mutant("limits_by_row", config=_TERMINATED, referenced=False)
class OneCounterForAllRows(Points):
    most = 29

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.count = 0

    def reset(self) -> Any:
        self.count = 0
        return super().reset()

    def step_wait(self) -> Any:
        self.count += 1
        return super().step_wait()

    def step_row(self, i: int, action: Any) -> Any:
        if self.count % self.most:
            return super().step_row(i, action)
        obs, reward, terminated, _, info = self.envs[i].step(action)
        info["TimeLimit.truncated"] = not terminated
        return self.end(i, obs, info), reward, True, info


# Few states, so that they are seen again and again.


@vec_env_mutant("terminal_states_are_no_truncations", referenced=False, options=None)
class TruncatedInATerminalState(Points):
    def make_row(self, row: int) -> Any:
        return CutInTheCorner()


@vec_env_mutant("terminal_states_are_no_truncations", referenced=False, options=None)
class TruncatedInATerminalStateOfItsTime(Points):
    def make_row(self, row: int) -> Any:
        return CutInTheCornerWithAClock()


@vec_env_mutant("action_masks_of_the_new_episode", referenced=False, options=None)
class MasksOfTheEpisodeBefore(Masked):
    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        return Points.end(self, i, last, info)


@vec_env_mutant("action_masks_of_the_new_episode", referenced=False, options=None)
class ObservedMasksOfTheEpisodeBefore(Masked):
    """Observations contain the masks; those that `env_method` gives are right."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        shown = {"at": self.observation_space, "mask": spaces.MultiBinary(4)}
        self.observation_space = spaces.Dict(shown)

    def observed(self, i: int, obs: Any, *, new: bool = False) -> Any:
        return {"at": obs, "mask": self.allowed(i).astype(np.int8)}

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        return {**super().end(i, last, info), "mask": last["mask"]}


@vec_env_mutant(
    "done_info_is_step_info",
    config=Config(lengths=(4, 6, 9), ends=("truncated",)),
    referenced=False,
)
class TimeIsThatOfTheNextEpisode(Points):
    """One entry of many: the others are those of the step."""

    def start(self, i: int) -> Any:
        first = super().start(i)
        self.reset_infos[i]["time"] = 0
        return first

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.reset_infos[i]["time"] = info["time"] = 0
        return first


@vec_env_mutant("terminal_observation_not_reset_obs", referenced=False, options=None)
class FinishedTwice(Points):
    """A row is reset for each of the two flags."""

    def make_row(self, row: int) -> Any:
        return Drifter()

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        last = self.autoreset(i)[0] if self.envs[i].both else last
        return super().end(i, last, info)
