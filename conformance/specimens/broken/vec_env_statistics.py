"""VecEnv mutants whose statistics of episodes are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.specimens.broken.vec_env_alike import Falls
from conformance.specimens.points import Config, Points
from conformance.specimens.registry import vec_env_mutant


class _Counting(Points):
    """Has a monitor in each row."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.returns = np.zeros(self.num_envs)
        self.lengths = np.zeros(self.num_envs, int)

    def reset(self) -> Any:
        self.returns[:], self.lengths[:] = 0, 0
        return super().reset()

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        self.returns[i] += reward
        self.lengths[i] += 1
        if done:
            told = {"r": round(float(self.returns[i]), 6), "l": int(self.lengths[i]), "t": 0.1}
            info["episode"] = told
            self.clear(i)
        return obs, reward, done, info

    def clear(self, i: int) -> None:
        self.returns[i], self.lengths[i] = 0, 0


@vec_env_mutant("episode_statistics_of_the_episode")
class StatisticsOverEpisodes(_Counting):
    def clear(self, i: int) -> None:
        pass


@vec_env_mutant("episode_statistics_of_the_episode")
class StatisticsOverResets(_Counting):
    def reset(self) -> Any:
        return Points.reset(self)


@vec_env_mutant("episode_statistics_of_the_episode")
class ReturnsOverEpisodes(_Counting):
    def clear(self, i: int) -> None:
        self.lengths[i] = 0


@vec_env_mutant("episode_statistics_of_the_episode")
class StatisticsWithoutTheLastStep(_Counting):
    def step_row(self, i: int, action: Any) -> Any:
        told = {"r": float(self.returns[i]), "l": int(self.lengths[i]), "t": 0.1}
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward, done, {**info, "episode": told} if done else info


@vec_env_mutant("episode_statistics_of_the_episode")
class StatisticsWithoutTheStepAfterAnEnd(_Counting):
    def clear(self, i: int) -> None:
        super().clear(i)
        self.lengths[i] = -1


@vec_env_mutant("episode_statistics_of_the_episode")
class StatisticsSetBackWithOthers(_Counting):
    def step_wait(self) -> Any:
        result = super().step_wait()
        if result[2].any():
            self.returns[:], self.lengths[:] = 0, 0
        return result


@vec_env_mutant("episode_statistics_of_the_episode")
class StatisticsSetBackBeforeTheyAreTold(_Counting):
    """Of the rows that end in one step, the first one is told right."""

    def step_wait(self) -> Any:
        result = super().step_wait()
        for i in np.flatnonzero(result[2])[1:]:
            result[3][i]["episode"].update(r=0.0, l=0)
        return result


@vec_env_mutant(
    "episode_statistics_of_the_episode",
    may_fail=("rows_independent", "rows_are_alike"),
    config=Config(lengths=(7, 5, 3)),
    referenced=False,
)
class StatisticsOfTheFirstRows(_Counting):
    """The first row that has ended gets those of row 0, and so on."""

    def step_wait(self) -> Any:
        self.told: dict[int, Any] = {}
        obs, rewards, dones, infos = super().step_wait()
        for k, i in enumerate(np.flatnonzero(dones)):
            infos[i]["episode"] = self.told[k]
        return obs, rewards, dones, infos

    def step_row(self, i: int, action: Any) -> Any:
        before = {"r": float(self.returns[i]), "l": int(self.lengths[i]), "t": 0.1}
        obs, reward, done, info = super().step_row(i, action)
        self.told[i] = info.get(
            "episode", before | {"r": before["r"] + reward, "l": before["l"] + 1}
        )
        return obs, reward, done, info


@vec_env_mutant(
    "episode_statistics_of_the_episode", config=Config(lengths=(4, 4, 6)), referenced=False
)
class StatisticsOfOneEndedRowSetBack(_Counting):
    """Those of the first one, if several rows end in one step."""

    def step_wait(self) -> Any:
        self.cleared = False
        return super().step_wait()

    def clear(self, i: int) -> None:
        if not self.cleared:
            super().clear(i)
        self.cleared = True


@vec_env_mutant("episode_statistics_of_the_episode", referenced=False)
class LastRewardsSetBackWithTheRest(_Counting):
    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, 0.0 if done else reward, done, info


@vec_env_mutant(
    "episode_statistics_of_the_episode",
    config=Config(lengths=(8,), ends=("truncated",)),
    referenced=False,
)
class StatisticsOfTerminationsOnly(_Counting):
    row = Falls

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        if info["TimeLimit.truncated"]:
            del info["episode"]
        return obs, reward, done, info
