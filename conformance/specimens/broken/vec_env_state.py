"""Mutants: seeds, options, and what belongs to whom."""

from __future__ import annotations

import secrets
from copy import deepcopy
from typing import Any

import numpy as np

from conformance.specimens.points import Config, Points
from conformance.specimens.registry import vec_env_mutant as mutant

# Seeding


@mutant("seed_returns_n")
class SeedReturnsNothing(Points):
    def seed(self, seed: int | None = None) -> Any:
        super().seed(seed)


@mutant("same_seed_same_trajectory")
class IgnoresSeeds(Points):
    def seed(self, seed: int | None = None) -> Any:
        super().seed(seed)
        seeds, self._seeds = self._seeds, [None] * self.num_envs
        return seeds


@mutant("same_seed_same_trajectory")
class DrawsFromTheGlobalState(Points):
    """Hypothesis sets that state before each example; it must not pass for a heeded seed."""

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, reward + np.random.normal(), done, info


@mutant("same_seed_same_trajectory")
class SeedsTheGlobalState(DrawsFromTheGlobalState):
    """Two instances in turn do the same, unless something else draws in between."""

    def reset(self) -> Any:
        if self._seeds[0] is not None:
            np.random.seed(self._seeds[0] % 2**32)
        return super().reset()


@mutant("unseeded_resets_repeatable")
class NewGeneratorsWithoutASeed(Points):
    def start(self, i: int) -> Any:
        if self._seeds[i] is None:
            self._seeds[i] = secrets.randbits(31)
        return super().start(i)


@mutant("seed_applies_at_next_reset_only")
class SeedsAtOnce(Points):
    def seed(self, seed: int | None = None) -> Any:
        seeds = super().seed(seed)
        for env, one in zip(self.envs, seeds, strict=True):
            env.unwrapped.np_random = np.random.default_rng(one)
        return seeds


@mutant("seed_applies_at_next_reset_only")
class SeedUsedByAutoreset(Points):
    def autoreset(self, i: int) -> Any:
        seed, self._seeds[i] = self._seeds[i], None
        return self.envs[i].reset(seed=seed)


@mutant("seed_used_once")
class SeedForGood(Points):
    def forget(self) -> None:
        self._options = [{} for _ in self.envs]


@mutant("seed_used_once", options=None)
class SeedKeptByOptions(Points):
    """A reset with options is one of its own, in which the seeds are forgotten."""

    def forget(self) -> None:
        if not any(self._options):
            self._seeds = [None] * self.num_envs
        self._options = [{} for _ in self.envs]

    def start(self, i: int) -> Any:
        self._options[i].get("shift")
        return super().start(i)


@mutant("seed_works_again", referenced=False)
class EpisodesCounted(Points):
    """The generator of an episode is made from the seed and the number of the episode."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.counts, self.roots = [0] * self.num_envs, list(range(self.num_envs))

    def start(self, i: int) -> Any:
        if self._seeds[i] is None:
            self.count(i)
        else:
            self.roots[i] = self._seeds[i]
        return super().start(i)

    def count(self, i: int) -> None:
        self.counts[i] += 1
        generator = np.random.default_rng((self.roots[i], self.counts[i]))
        self.envs[i].unwrapped.np_random = generator

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        self.count(i)
        return super().end(i, last, info)


@mutant("seed_works_again")
class FirstSeedOnly(Points):
    """Its rows are those of a simulator, which tell no seeds."""

    heard = False

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        if attr_name == "np_random_seed":
            raise AttributeError(attr_name)
        return super().get_attr(attr_name, indices)

    def start(self, i: int) -> Any:
        if self.heard:
            self._seeds = [None] * self.num_envs
        return super().start(i)

    def forget(self) -> None:
        self.heard = self.heard or self._seeds[0] is not None
        super().forget()


@mutant("seeds_differ_by_row")
class OneSeedForAll(Points):
    def seed(self, seed: int | None = None) -> Any:
        first = super().seed(seed)[0]
        self._seeds = [first] * self.num_envs
        return list(self._seeds)


@mutant("seeds_differ_by_row", may_fail=("rows_are_alike",))
class TwoRowsHaveOneSeed(Points):
    """As where each worker adds the place of a row in it to a seed of its own."""

    def seed(self, seed: int | None = None) -> Any:
        super().seed(seed)
        self._seeds = [*self._seeds[:2], *self._seeds[1:-1]]
        return list(self._seeds)


@mutant("large_seeds_accepted")
class SeedsAreSigned(Points):
    def seed(self, seed: int | None = None) -> Any:
        return super().seed(seed if seed is None else int(np.int32(seed)))


@mutant("large_seeds_accepted")
class LargeSeedsAreCut(Points):
    def seed(self, seed: int | None = None) -> Any:
        return super().seed(seed if seed is None else min(seed, 2**31 - 1))


@mutant("large_seeds_accepted")
class SeedNoneRefused(Points):
    def seed(self, seed: int | None = None) -> Any:
        if seed is None:
            raise TypeError("Expected a seed, got None.")
        return super().seed(seed)


# Options


@mutant("options_reach_env")
class IgnoresOptions(Points):
    def set_options(self, options: Any = None) -> None:
        super().set_options(None)


@mutant("options_per_row")
class FirstOptionsForAll(Points):
    def set_options(self, options: Any = None) -> None:
        super().set_options(options[0] if isinstance(options, list) else options)


@mutant("options_per_row")
class ListTakenForADict(Points):
    def reset(self) -> Any:
        if any(options != self._options[0] for options in self._options):
            dict(self._options)
        return super().reset()


class _Simulator(Points):
    """Its rows are no environments, and nobody says which options it takes."""

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        if attr_name == "unwrapped":
            raise AttributeError(attr_name)
        return super().get_attr(attr_name, indices)


@mutant("options_per_row", options=None)
class FirstOptionsForAllInASimulator(FirstOptionsForAll, _Simulator):
    pass


@mutant("options_per_row", options=None)
class FirstRowTakesTheOption(_Simulator):
    """A dict for all rows is one object."""

    def start(self, i: int) -> Any:
        self._options[i] = {"shift": self._options[i].pop("shift", 0)}
        return super().start(i)


@mutant("options_used_once")
class OptionsForGood(Points):
    def forget(self) -> None:
        self._seeds = [None] * self.num_envs


@mutant("options_used_once", options=None)
class OptionsForGoodInASimulator(OptionsForGood, _Simulator):
    pass


@mutant("options_used_once", options=None)
class OptionsInAutoresets(Points):
    def reset(self) -> Any:
        self.kept = deepcopy(self._options)
        return super().reset()

    def autoreset(self, i: int) -> Any:
        return self.envs[i].reset(options=self.kept[i] or None)


@mutant("options_used_once", options=None)
class OptionsInAutoresetsOfASimulator(OptionsInAutoresets, _Simulator):
    pass


@mutant("options_copied")
class OptionsNotCopied(Points):
    def set_options(self, options: Any = None) -> None:
        super().set_options(options)
        if isinstance(options, dict):
            self._options = [options] * self.num_envs


@mutant("options_copied", options=None)
class FillsInDefaults(OptionsNotCopied):
    """Nobody says which options it takes."""

    def reset(self) -> Any:
        for options in self._options:
            options.setdefault("layout", 0)
        return super().reset()


# Ownership


@mutant("outputs_unchanged_by_later_steps")
class OneArrayForRewards(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.rewards = np.zeros(self.num_envs, np.float32)

    def step_wait(self) -> Any:
        obs, self.rewards[:], dones, infos = super().step_wait()
        return obs, self.rewards, dones, infos


@mutant("outputs_unchanged_by_reset")
class ResetClearsTheLastBatch(Points):
    def reset(self) -> Any:
        if self.given is not None:
            self.given[:] = 0
        return super().reset()

    given: Any = None

    def step_wait(self) -> Any:
        result = super().step_wait()
        self.given = result[0]
        return result


@mutant("terminal_observation_not_aliased")
class TerminalObservationInABuffer(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.lasts = np.zeros((self.num_envs, 3), np.float32)

    def terminal(self, i: int, last: Any, first: Any) -> Any:
        self.lasts[i] = last
        return self.lasts[i]


@mutant("infos_unchanged_by_later_steps")
class InfosAreMarkedLater(Points):
    before: Any = ()

    def step_wait(self) -> Any:
        for info in self.before:
            info["old"] = True
        results = super().step_wait()
        self.before = results[3]
        return results


@mutant("infos_unchanged_by_later_steps", may_fail=("terminal_observation_not_aliased",))
class InfosUsedAgain(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.infos: list[dict[str, Any]] = [{} for _ in self.envs]

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        for used, info in zip(self.infos, infos, strict=True):
            used.clear()
            used.update(info)
        return obs, rewards, dones, list(self.infos)


@mutant("actions_unchanged", config=Config(continuous=True))
class ScalesInPlace(Points):
    def step_async(self, actions: Any) -> None:
        super().step_async(actions.copy())
        actions *= 0.5


@mutant("actions_not_kept", config=Config(continuous=True), referenced=False)
class KeepsTheActions(Points):
    """Rewards have a penalty on jerks."""

    kept: Any = None

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.fresh = np.ones(self.num_envs, bool)

    def start(self, i: int) -> Any:
        self.fresh[i] = True
        return super().start(i)

    def step_async(self, actions: Any) -> None:
        super().step_async(actions)
        jerk = 0 if self.kept is None else np.abs(actions - self.kept).sum(axis=1)
        self.jerk, self.kept = np.where(self.fresh, 0, jerk), actions

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        self.fresh = dones.copy()
        return obs, rewards - self.jerk.astype(np.float32), dones, infos
