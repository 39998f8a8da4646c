"""VectorEnv mutants whose mistake shows in several episodes together."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from conformance.specimens.registry import vector_env_mutant
from conformance.specimens.rows_env import Form, RowEnv, RowsEnv
from conformance.specimens.worlds import CutInTheCorner, CutInTheCornerWithAClock, Drifter


class RowsCounted(RowsEnv):
    """Has a monitor over all rows."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.returns, self.counts = np.zeros(self.num_envs), np.zeros(self.num_envs, int)

    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(rows, masked)
        self.returns[rows], self.counts[rows] = 0, 0

    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        self.returns[i] += self.rewards[i]
        self.counts[i] += 1
        if self.flags[:, i].any():
            told = {"r": self.returns[i], "l": self.counts[i], "t": 0.1}
            self.infos = self.add_info(self.infos, {"episode": told}, i)
            self.over(i)

    def over(self, i: int) -> None:
        self.returns[i], self.counts[i] = 0, 0


@vector_env_mutant("episode_statistics_of_the_episode", modes=("NextStep", "SameStep"))
class StatisticsOverAllEpisodes(RowsCounted):
    def over(self, i: int) -> None:
        pass


@vector_env_mutant("episode_statistics_of_the_episode")
class StatisticsOverAllResets(RowsCounted):
    def clear(self, rows: Any, masked: bool) -> None:
        RowsEnv.clear(self, rows, masked)


@vector_env_mutant("episode_statistics_of_the_episode", modes=("Disabled",))
class StatisticsSetBackWithOtherRows(RowsCounted):
    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(rows, masked)
        self.returns[:], self.counts[:] = 0, 0


@vector_env_mutant("episode_statistics_of_the_episode", modes=("NextStep",))
class StatisticsWithTheResetStep(RowsCounted):
    def reset_step(self, i: int, action: Any) -> None:
        super().reset_step(i, action)
        self.counts[i] += 1


@vector_env_mutant("episode_statistics_of_the_episode", modes=("SameStep",))
class StatisticsWithoutTheStepAfterTheEnd(RowsCounted):
    def over(self, i: int) -> None:
        self.returns[i], self.counts[i] = 0, -1


class _FallingRow(RowEnv):
    """At its limit it may have fallen, wherever it is then."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        fallen = (terminated or truncated) and int(10 * self.x) % 2 == 0
        return obs, reward, fallen, (terminated or truncated) and not fallen, info


@vector_env_mutant("episode_statistics_of_the_episode")
class StatisticsOfTerminationsOnlyInArrays(RowsCounted):
    row = _FallingRow

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        if "_episode" in infos:
            infos["_episode"] &= results[2]
        return (*results, infos)


@vector_env_mutant("infos_without_old_entries", may_fail=("rows_independent",))
class TellsEndsInTheFirstRowsOfAll(RowsEnv):
    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        for k, _ in enumerate(np.flatnonzero(self.flags.any(axis=0))):
            infos = self.add_info(infos, {"score": 1.0}, k)
        return *results, infos


@vector_env_mutant("infos_without_old_entries")
class SuccessIsLeft(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.old: dict[int, bool] = {}

    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(rows, masked)
        self.old = self.old if masked else {}

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        ended = {int(i): True for i in np.flatnonzero(self.flags.any(axis=0))}
        for i, told in {**self.old, **ended}.items():
            infos = self.add_info(infos, {"success": told}, i)
        self.old = ended
        return (*results, infos)


@vector_env_mutant("infos_without_others_entries")
class NoneInOtherRows(RowsEnv):
    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        events = [row.done == 2 for row in self.rows]
        if any(events):
            infos["event"] = np.array(["half time" if event else None for event in events])
        return (*results, infos)


@vector_env_mutant("infos_without_others_entries")
class OneMaskForTwoEntries(RowsEnv):
    def add_info(self, infos: dict[str, Any], info: dict[str, Any], i: int) -> dict[str, Any]:
        name = {2: "gems", 3: "traps"}.get(self.rows[i].done)
        infos = super().add_info(infos, info | ({name: i + 1} if name else {}), i)
        if {"gems", "traps"} <= infos.keys():
            infos["_gems"] = infos["_traps"] = infos["_gems"] | infos["_traps"]
        return infos


@vector_env_mutant("infos_without_old_entries", "infos_without_others_entries", modes=("Disabled",))
class MaskOfAllRowsAfterMaskedResets(RowsEnv):
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        obs, infos = super().reset(seed=seed, options=options)
        infos["_start"][:] = True
        return obs, infos


@vector_env_mutant("info_masks")
class ValuesOfTheMaskedRowsOnly(RowsEnv):
    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        half = np.array([row.done == 2 for row in self.rows])
        if half.any():
            infos |= {"half_time": results[1][half], "_half_time": half}
        return (*results, infos)


@vector_env_mutant("terminal_states_terminate")
class TruncatedInTerminalStates(RowsEnv):
    def make_row(self, i: int) -> Any:
        return CutInTheCorner()


@vector_env_mutant("terminal_states_terminate")
class TruncatedInTerminalStatesOfTheirTime(RowsEnv):
    def make_row(self, i: int) -> Any:
        return CutInTheCornerWithAClock()


@vector_env_mutant("final_info_is_step_info", modes=("SameStep",), steady=True)
class TurnsAreThoseOfTheNextEpisode(RowsEnv):
    """One entry of many: the others are those of the step."""

    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        first = super().restart(i, info)
        info["turns"] = self.rows[i].done
        return first

    def add_info(self, infos: dict[str, Any], info: dict[str, Any], i: int) -> dict[str, Any]:
        more = {} if "final_info" in info else {"turns": self.rows[i].done}
        return super().add_info(infos, info | more, i)


@vector_env_mutant("infos_of_the_autoreset", modes=("NextStep", "SameStep"))
class InfosOfAutoresetsAreLost(RowsEnv):
    def autoreset(self, i: int) -> dict[str, Any]:
        super().autoreset(i)
        return {}


@vector_env_mutant("infos_of_the_autoreset", modes=("SameStep",))
class InfosOfAutoresetsAreFinal(RowsEnv):
    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        first = super().restart(i, info)
        self.finals[i] = self.finals[i][0], {**deepcopy(first), **info}
        return first


@vector_env_mutant(
    "infos_of_the_autoreset", modes=("SameStep",), endings=("truncated", "terminated")
)
class InfosOfTruncationsAreLeft(RowsEnv):
    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        first = super().restart(i, info)
        return {**info, **first} if self.flags[1, i] else first


class Rooms(RowsEnv):
    """Infos have a number that is 0 after a reset, and in the first step of an episode."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.rooms = [0] * self.num_envs

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        self.rooms[i] = 0
        return super().begin(i, seed, options) | {"room": 0}

    def step_row(self, i: int, action: Any) -> None:
        self.enter(i)
        super().step_row(i, action)
        if not (self.flags[:, i].any() and self.form.mode == "SameStep"):
            self.infos = self.add_info(self.infos, {"room": self.rooms[i]}, i)

    def enter(self, i: int) -> None:
        self.rooms[i] = self.rows[i].done % 3

    def reset_step(self, i: int, action: Any) -> None:
        super().reset_step(i, action)
        self.infos = self.add_info(self.infos, {"room": self.after_an_end(i)}, i)

    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        return super().restart(i, info | {"room": self.rooms[i]}) | {"room": self.after_an_end(i)}

    def after_an_end(self, i: int) -> int:
        return 0


@vector_env_mutant("infos_of_the_autoreset", modes=("NextStep", "SameStep"), steady=True)
class RoomsOfTheLastStep(Rooms):
    def after_an_end(self, i: int) -> int:
        return self.rooms[i]


class _MapRow(RowEnv):
    """Infos have its place; that of an autoreset is the last one of the episode before."""

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        before = self.x
        obs, info = super().reset(seed=seed, options=options)
        return obs, info | {"map": before if options is None else self.x}

    def step(self, action: Any) -> Any:
        *results, info = super().step(action)
        return (*results, info | {"map": self.x})


@vector_env_mutant("infos_of_the_autoreset", modes=("NextStep", "SameStep"))
class MapsOfTheLastStep(RowsEnv):
    """Each reset draws another map."""

    row = _MapRow


_in_rows_that_end_together = vector_env_mutant(
    "rows_independent",
    may_fail=("rows_are_alike",),
    modes=("NextStep", "Disabled"),
    lengths=(4, 4, 3),
    endings=("terminated",),
    steady=True,
)


@_in_rows_that_end_together
class ScoreOfTheLastRowThatEnds(RowsEnv):
    """Of rows that end in one step: its array and mask are made anew for each."""

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        for i in np.flatnonzero(self.flags.any(axis=0))[-1:]:
            infos |= self._add_info({}, {"score": 1.0}, i)
        return (*results, infos)


@_in_rows_that_end_together
class WordOfTheLastRowThatEnds(RowsEnv):
    """Of rows that end in one step: its array is made anew for each, but not the mask."""

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        for i in map(int, np.flatnonzero(self.flags.any(axis=0))):
            infos = self.add_info(infos, {"word": "over"}, i)
            infos["word"] = np.full(self.num_envs, None)
            infos["word"][i] = "over"
        return (*results, infos)


@vector_env_mutant("last_reward_like_others")
class LastRewardsOfZeroInRows(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        self.rewards[i] *= not self.flags[:, i].any()


@vector_env_mutant("last_reward_like_others", modes=("SameStep",))
class RewardsOnTheWayToTheNextStartInRows(RowsEnv):
    """The reward is how far the step has moved the row, by the observation that it returns."""

    def step_row(self, i: int, action: Any) -> None:
        before = self.obs[i]
        super().step_row(i, action)
        self.rewards[i] = self.obs[i][0] - before[0]


@vector_env_mutant("rows_independent")
class InfosOfOthersLostAtEnds(RowsEnv):
    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        ended = self.flags.any(axis=0)
        for key in {"x", "nested"} & infos.keys() if ended.any() else ():
            infos[f"_{key}"] = infos[f"_{key}"] & ended
        return (*results, infos)


@vector_env_mutant("rows_independent")
class StatisticsOfTheLastRow(RowsEnv):
    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        statistics = {"reward": float(self.rewards[-1]), "x": self.rows[-1].x}
        for i in range(self.num_envs):
            infos = self.add_info(infos, {"statistics": statistics}, i)
        return (*results, infos)


@vector_env_mutant("limits_by_row", endings=("terminated",))
class OneCounterForAll(RowsEnv):
    most = 29

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.count = 0

    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(rows, masked)
        if not masked:
            self.count = 0

    def advance(self, actions: list[Any]) -> None:
        self.count += 1
        super().advance(actions)

    def step_row(self, i: int, action: Any) -> None:
        row = self.rows[i]
        step = row.step
        if self.count % self.most == 0:
            row.step = lambda action: _cut(step(action))  # type: ignore[method-assign]
        super().step_row(i, action)
        row.step = step  # type: ignore[method-assign]


def _cut(result: Any) -> Any:
    obs, reward, terminated, _, info = result
    return obs, reward, terminated, True, info


@vector_env_mutant("final_obs_is_last", modes=("SameStep",), sub_envs=False)
class FinishedTwice(RowsEnv):
    """A row is reset for each of the two flags."""

    def make_row(self, i: int) -> Any:
        return Drifter()

    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        row: Any = self.rows[i]
        if row.both:
            self.autoreset(i)
        return super().restart(i, info)
