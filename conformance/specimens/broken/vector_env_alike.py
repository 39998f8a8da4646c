"""Mutants that are wrong in some rows, or in some resets, only; without single environments."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.specimens.registry import vector_env_mutant as mutant
from conformance.specimens.rows_env import Form, RowEnv, RowsEnv

# Rows that differ by their seeds only, and end together.
ALIKE: dict[str, Any] = {
    "kind": "counted", "lengths": (6,), "endings": ("truncated",), "steady": True,
}  # fmt: skip
ONE_GENERATOR: dict[str, Any] = {**ALIKE, "one_generator": True, "sub_envs": False}


@mutant("rows_are_alike", **ALIKE)
class LastRowStandsStill(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        if i < self.num_envs - 1:
            super().step_row(i, action)


class _TakesOneSeed(RowsEnv):
    """As a native simulator: it makes the seeds of its rows from one, and takes no list."""

    def seeds(self, seed: Any) -> list[Any]:
        if isinstance(seed, list):
            raise TypeError("Expected one seed, got a list.")
        return super().seeds(seed)


_MASKED = ("masked_reset_restarts_masked",)


@mutant("rows_independent", may_fail=_MASKED, sub_envs=False, **ALIKE)
class RewardsInReverse(_TakesOneSeed):
    def advance(self, actions: list[Any]) -> None:
        waiting = self.pending.any()
        super().advance(actions)
        if not waiting:
            self.rewards = self.rewards[::-1].copy()


@mutant("rows_are_alike", may_fail=_MASKED, sub_envs=False, **ALIKE)
class DrawnRewardsInReverse(RewardsInReverse):
    """Rewards that do not depend on actions, so that no action of another row shows."""

    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        self.rewards[i] = 1 + self.rows[i].np_random.random()


@mutant("rows_independent", sub_envs=False, **ALIKE)
class ActionsInReverse(_TakesOneSeed):
    def advance(self, actions: list[Any]) -> None:
        super().advance(actions[::-1])


@mutant("endings_together", **ALIKE)
class StartsSwappedInLastObservations(RowsEnv):
    """The part of it that no action changes is that of another row."""

    def advance(self, actions: list[Any]) -> None:
        super().advance(actions)
        rows = np.flatnonzero(self.flags.any(axis=0)).tolist()
        if len(rows) < 2:
            return
        lasts = [self.last_of(i) for i in rows]
        for last, other in zip(lasts, [last[1] for last in reversed(lasts)], strict=True):
            last[1] = other

    def last_of(self, i: int) -> Any:
        return self.finals[i][0] if self.form.mode == "SameStep" else self.obs[i]


@mutant("autoreset_like_reset", **ONE_GENERATOR)
class AutoresetLeavesTheCounter(RowsEnv):
    asked = True

    def step(self, actions: Any) -> Any:
        self.asked = False
        return super().step(actions)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.asked = "reset_mask" not in (options or {})
        return super().reset(seed=seed, options=options)

    def make_row(self, i: int) -> RowEnv:
        outer = self

        class Row(RowEnv):
            def reset(self, *, seed: Any = None, options: Any = None) -> Any:
                left = self.done
                obs, info = super().reset(seed=seed, options=options)
                if not outer.asked:
                    obs[2] = left
                return obs, info

        return Row(self.form, i)


@mutant("autoreset_like_reset", **{**ONE_GENERATOR, "kind": "image"})
class ImagesOfZerosAfterEnds(AutoresetLeavesTheCounter):
    def make_row(self, i: int) -> RowEnv:
        outer = self

        class Row(RowEnv):
            def reset(self, *, seed: Any = None, options: Any = None) -> Any:
                obs, info = super().reset(seed=seed, options=options)
                return obs if outer.asked else obs * 0, info

        return Row(self.form, i)


@mutant("autoreset_like_reset", **{**ONE_GENERATOR, "kind": "box"})
class TimeIsUpForGoodAfterAnEnd(AutoresetLeavesTheCounter):
    """Observations do not show the time."""

    def make_row(self, i: int) -> RowEnv:
        outer = self

        class Row(RowEnv):
            def reset(self, *, seed: Any = None, options: Any = None) -> Any:
                found = super().reset(seed=seed, options=options)
                if not outer.asked:
                    self.done = self.length
                return found

        return Row(self.form, i)


@mutant(
    "autoreset_like_reset", modes=("Disabled",), **{**ONE_GENERATOR, "kind": "box", "lengths": (3,)}
)
class MaskedResetsSeedAgain(RowsEnv):
    last: Any = None

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if "reset_mask" in (options or {}):
            seed = self.last if seed is None else seed
        elif seed is not None:
            self.last = seed
        return super().reset(seed=seed, options=options)


class _LastObs(RowsEnv):
    """Changes the last observations of episodes."""

    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        if self.form.mode == "SameStep" and i in self.finals:
            self.finals[i] = self.changed(self.finals[i][0]), self.finals[i][1]
        elif self.flags[:, i].any():
            self.obs[i] = self.changed(self.obs[i])

    def changed(self, last: Any) -> Any:
        raise NotImplementedError


@mutant("last_obs_like_others", **{**ALIKE, "lengths": (9,)})
class LastObsOfZeros(_LastObs):
    def changed(self, last: Any) -> Any:
        return last * 0


@mutant("last_obs_like_others", **{**ALIKE, "lengths": (9,)})
class LastObsNotNormalised(_LastObs):
    def changed(self, last: Any) -> Any:
        return last * 20


# Seeds


@mutant("seeds_differ_by_row", kind="image")
class OneSeedForAll(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return super().seeds([seed] * self.num_envs if isinstance(seed, int) else seed)


@mutant("seeds_differ_by_row", kind="image")
class TwoRowsHaveOneSeed(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        known = super().seeds(seed)
        return [*known[:2], *known[1:-1]] if isinstance(seed, int) else known


@mutant("seed_int_is_seed_plus_i")
class SeedsFarApart(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        if isinstance(seed, int):
            seed = [seed + 1000 * i for i in range(self.num_envs)]
        return super().seeds(seed)


@mutant("seed_list_by_row")
class FirstSeedOfAList(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return super().seeds(int(seed[0]) if isinstance(seed, list) else seed)


@mutant("large_seeds_accepted")
class SeedsAreSigned(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return super().seeds(int(np.int32(seed)) if isinstance(seed, int) else seed)


@mutant("large_seeds_accepted")
class LargeSeedsAreCut(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return super().seeds(min(seed, 2**31 - 1) if isinstance(seed, int) else seed)


# Ownership, infos


@mutant("actions_unchanged")
class WritesIntoActions(RowsEnv):
    def step(self, actions: Any) -> Any:
        result = super().step(actions)
        actions[...] = 0
        return result


@mutant("actions_not_kept")
class KeepsTheActions(RowsEnv):
    """Rewards have a penalty on jerks."""

    kept: Any = None

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.fresh = np.ones(self.num_envs, bool)

    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(rows, masked)
        self.fresh[rows] = True

    def step(self, actions: Any) -> Any:
        waiting = self.pending.copy()
        obs, rewards, *rest = super().step(actions)
        jerk = 0 if self.kept is None else np.abs(actions - self.kept)
        rewards -= np.where(self.fresh | waiting, 0, jerk)
        self.fresh, self.kept = self.flags.any(axis=0) | waiting, actions
        return obs, rewards, *rest


@mutant("episode_statistics_at_end_only")
class StatisticsNeverCleared(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.told = np.zeros(self.num_envs, bool)

    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = super().step(actions)
        self.told |= terminations | truncations
        if self.told.any():
            infos["episode"] = {"r": rewards.copy(), "l": np.full(self.num_envs, 3)}
            infos["_episode"] = self.told.copy()
        return obs, rewards, terminations, truncations, infos


@mutant("nothing_kept_over_ends", modes=("NextStep", "SameStep"))
class KeepsThePlace(RowsEnv):
    """Rewards have the distance from the place before, which an autoreset does not set."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.before = np.zeros(self.num_envs)

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        info = super().begin(i, seed, options)
        self.before[i] = self.rows[i].x
        return info

    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        now = self.finals[i][0][0] if i in self.finals else self.rows[i].x
        self.rewards[i] += now - self.before[i]
        self.before[i] = now


# Access, reading, life


@mutant("access_works_or_is_refused")
class AttributesOfTheForm(RowsEnv):
    def get_attr(self, name: str) -> Any:
        return tuple(getattr(row.form, name) for row in self.rows)


@mutant("reading_changes_nothing")
class RenderingDraws(RowsEnv):
    def render(self) -> Any:
        for row in self.rows:
            row.np_random.random()
            row.x += 0.01
        return super().render()


@mutant("memory_does_not_grow")
class KeepsInfos(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.ended: list[Any] = []

    def step(self, actions: Any) -> Any:
        result = super().step(actions)
        if (result[2] | result[3]).any():
            self.ended.append((result[0].copy(), dict(result[4])))
        return result


@mutant(
    "autoreset_like_reset",
    modes=("NextStep",),
    lengths=(6, 9, 14),
    endings=("truncated",),
    steady=True,
)
class TheResetIsAStep(RowsEnv):
    """It counts for the time limit."""

    def reset_step(self, i: int, action: Any) -> None:
        super().reset_step(i, action)
        self.rows[i].done += 1
