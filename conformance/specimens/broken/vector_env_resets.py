"""Mutants of seeds, options and resets of a VectorEnv, masked resets among them."""

from __future__ import annotations

import secrets
from copy import copy
from typing import Any

import numpy as np

from conformance.specimens.registry import vector_env_mutant as mutant
from conformance.specimens.rows_env import RowEnv, RowsEnv

# Seeds, options, resets


@mutant("same_seed_same_trajectory")
class DrawsFromTheGlobalGenerator(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        self.rows[i].x += np.random.uniform(0, 0.1)
        super().step_row(i, action)


@mutant("same_seed_same_trajectory")
class SeedsTheGlobalGenerator(DrawsFromTheGlobalGenerator):
    def seeds(self, seed: Any) -> list[Any]:
        found = super().seeds(seed)
        if found[0] is not None:
            np.random.seed(found[0] % 2**32)
        return found


@mutant("same_seed_same_trajectory")
class IgnoresSeeds(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return [None] * self.num_envs


@mutant("same_seed_same_trajectory", lengths=(1, 2, 3))
class TakesZeroForNoSeed(RowsEnv):
    """Two instances under it have nothing in common, also where the first step is the last."""

    def seeds(self, seed: Any) -> list[Any]:
        return super().seeds(seed or None)


@mutant("unseeded_resets_repeatable")
class NewGeneratorsWithoutASeed(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if seed is None and "reset_mask" not in (options or {}):
            seed = secrets.randbits(31)
        return super().reset(seed=seed, options=options)


class _KeepsItsSeed(RowEnv):
    kept: Any = None

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.kept = self.kept if seed is None else seed
        return super().reset(seed=self.kept, options=options)


@mutant("seed_used_once")
class SeedKept(RowsEnv):
    row = _KeepsItsSeed


class _CountsEpisodes(RowEnv):
    root, count = 0, 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if seed is None:
            self.count += 1
            self.np_random = np.random.default_rng((self.root, self.row, self.count))
        else:
            self.root = seed
        return super().reset(seed=seed, options=options)


@mutant("seed_works_again")
class EpisodesCounted(RowsEnv):
    """The generator of an episode is made from the seed and the number of the episode."""

    row = _CountsEpisodes


@mutant("seed_works_again")
class FirstSeedOnly(RowsEnv):
    heard = False

    def seeds(self, seed: Any) -> list[Any]:
        found = super().seeds(None if self.heard else seed)
        self.heard = self.heard or seed is not None
        return found


@mutant("seed_list_by_row")
class MixesTheSeedsOfAList(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        more = sum(seed) if isinstance(seed, list) and None not in seed else 0
        return [s if s is None else s + more for s in super().seeds(seed)]


@mutant(
    "seed_int_is_seed_plus_i",
    referenced=True,
    untold="one generator for all rows cannot follow the rule, and is not judged",
    one_generator=True,
    sub_envs=False,
)
class OneGeneratorForAll(RowsEnv):
    pass


@mutant("reset_clears_pending_autoreset", modes=("NextStep", "Disabled"))
class PendingAfterReset(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        if masked or not self.pending.any():
            super().clear(rows, masked)


@mutant("reset_clears_pending_autoreset", modes=("SameStep",))
class EndedRowsStartTwice(RowsEnv):
    """It notes which rows have just ended, and after a `reset()` takes that for a task."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        result = super().reset(seed=seed, options=options)
        if "reset_mask" not in (options or {}):
            self.pending[list(getattr(self, "finals", ()))] = True
        return result

    def advance(self, actions: list[Any]) -> None:
        super().advance(actions)
        self.pending[:] = False


@mutant("reset_clears_counters", lengths=(9, 14, 20))
class CounterGoesOn(RowsEnv):
    shortest = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        before = [row.done for row in self.rows]
        result = super().reset(seed=seed, options=options)
        if "reset_mask" not in (options or {}):
            for row, done in zip(self.rows, before, strict=True):
                row.done = done if self.shortest < row.length > done else 0
        return result


@mutant("reset_clears_counters", lengths=(3, 20, 20))
class CounterGoesOnInLongEpisodes(CounterGoesOn):
    """Another row ends long before."""

    shortest = 3


@mutant(
    "reset_clears_counters",
    may_fail=("masked_reset_restarts_masked", "one_reset_per_episode"),
    lengths=(9, 14, 20),
)
class NumberDrawnAhead(RowsEnv):
    """Numbers are drawn in pairs, and a seed does not discard the second one of a pair."""

    spare = False

    def advance(self, actions: list[Any]) -> None:
        self.spare = not self.spare
        super().advance(actions)

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        info = super().begin(i, seed, options)
        return super().begin(i, None, options) if self.spare else info


@mutant("reset_clears_counters", may_fail=("masked_reset_restarts_masked",), lengths=(40, 3, 40))
class StartDrawnAheadInRows(RowsEnv):
    """A row that has gone far draws its next start, and a seed does not discard it."""

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        far = 4 < self.rows[i].done < self.rows[i].length
        info = super().begin(i, seed, options)
        return super().begin(i, None, options) if far else info


@mutant(
    "reset_clears_counters",
    may_fail=("masked_reset_restarts_masked",),
    modes=("Disabled",),
    noise=True,
    lengths=(9, 14, 20),
)
class SeedSeenBefore(RowsEnv):
    """What a seed generates is kept, and then the seed does not reach the generator again."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.starts: dict[Any, float] = {}

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        if seed is None or seed not in self.starts:
            info = super().begin(i, seed, options)
            self.starts[seed] = self.rows[i].x
            return info
        super().begin(i, None, options)
        row = self.rows[i]
        row.x = row.start = self.starts[seed]
        self.obs[i] = row.observe()
        return {"start": row.x}


@mutant("options_not_mutated")
class PopsOptions(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        result = super().reset(seed=seed, options=options)
        if options is not None:
            options.clear()
            options["seen"] = True
        return result


@mutant("options_reach_env")
class FirstRowTakesTheOption(RowsEnv):
    """One dict goes to all rows."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.given = {} if options is None else copy(options)
        return super().reset(seed=seed, options=options)

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        return super().begin(i, seed, {**options, "offset": self.given.pop("offset", 0)})


@mutant("options_reach_env", options={"offset": 100})
class DropsOptions(RowsEnv):
    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        return super().begin(i, seed, {})


@mutant(
    "options_used_once",
    options={"offset": 100},
    untold="only its own options show that they stay",
)
class OptionsStay(RowsEnv):
    """Its resets of all rows configure them, and nothing sets that back."""

    offset = 0.0

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        self.offset = options.get("offset", self.offset)
        return super().begin(i, seed, {**options, "offset": self.offset})


@mutant("options_used_once", modes=("NextStep", "SameStep"))
class OptionsOfTheNextEpisodes(RowsEnv):
    """The rows' own resets have the options of the last reset of all rows."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.given = dict(options or {})
        return super().reset(seed=seed, options=options)

    def autoreset(self, i: int) -> dict[str, Any]:
        return self.begin(i, None, self.given)


# Masked resets


class _MaskedResetReturnsZeros(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        obs, infos = super().reset(seed=seed, options=options)
        if "reset_mask" in (options or {}):
            obs[~options["reset_mask"]] = 0
        return obs, infos


@mutant("masked_reset_leaves_others", modes=("Disabled",))
class MaskedResetReturnsZeros(_MaskedResetReturnsZeros):
    pass


@mutant(
    "masked_reset_leaves_others",
    modes=("NextStep", "SameStep"),
    untold="an environment with autoreset may ignore masks, and then other rows change as well",
    declared={"masked_reset": True},
)
class DeclaredMaskedResetReturnsZeros(_MaskedResetReturnsZeros):
    pass


@mutant("masked_reset_lets_others_go_on", lengths=(6, 9, 14))
class MaskedResetClearsAllCounters(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        # Not in the resets that the caller has to ask for.
        if masked and not self.pending.any():
            for row in self.rows:
                row.done = 0
        super().clear(rows, masked)


@mutant("masked_reset_lets_others_go_on", modes=("NextStep",), lengths=(4, 4, 9))
class MaskedResetClearsAllPending(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(np.ones_like(rows), masked)


@mutant("masked_reset_lets_others_go_on", noise=True, lengths=(6, 9, 14))
class MaskedResetSeedsAllRows(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(rows, masked)
        if masked and self.seeded:
            for row in (self.rows[i] for i in np.flatnonzero(~rows)):
                row.np_random = np.random.default_rng(3)

    def seeds(self, seed: Any) -> list[Any]:
        self.seeded = seed is not None
        return super().seeds(seed)


@mutant(
    "masked_reset_lets_others_go_on",
    options={"offset": 100},
    lengths=(6, 9, 14),
)
class OptionsOfAMaskedResetForAll(RowsEnv):
    """The offset of a reset is paid for in each step."""

    offset = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if (options or {}).get("reset_mask") is None or "offset" in options:
            self.offset = (options or {}).get("offset", 0)
        return super().reset(seed=seed, options=options)

    def advance(self, actions: list[Any]) -> None:
        going = ~self.pending
        super().advance(actions)
        self.rewards -= self.offset * going


@mutant("outputs_unchanged_by_masked_reset", modes=("Disabled",))
class MaskedResetWritesIntoTheLastObservations(RowsEnv):
    returned: Any = None

    def step(self, actions: Any) -> Any:
        result = super().step(actions)
        self.returned = result[0]
        return result

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        obs, infos = super().reset(seed=seed, options=options)
        if "reset_mask" in (options or {}) and self.returned is not None:
            self.returned[...] = obs
        return obs, infos


@mutant("masked_reset_restarts_masked")
class MaskedResetWithoutSeed(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        masked = "reset_mask" in (options or {})
        return super().reset(seed=None if masked else seed, options=options)


@mutant("masked_reset_restarts_masked", options={"offset": 100})
class MaskedResetWithoutOptions(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        options = options or {}
        given = {"offset": options.get("offset", 0)}
        if "reset_mask" in options:
            given = {"reset_mask": options["reset_mask"]}
        return super().reset(seed=seed, options=given)


@mutant("masked_reset_restarts_masked", modes=("NextStep",))
class PendingAfterMaskedReset(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        if not masked:
            super().clear(rows, masked)


@mutant("bad_mask_rejected")
class AnyMask(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if "reset_mask" in (options or {}):
            mask = np.resize(options["reset_mask"], self.num_envs).astype(bool)
            options = {**options, "reset_mask": mask}
        return super().reset(seed=seed, options=options)
