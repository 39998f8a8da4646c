"""Rows of a VectorEnv: each is its own environment."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools import kept, limits, shifted
from sb3compat.conformance.checks.tools.comparing import all_of, others_alike
from sb3compat.conformance.checks.tools.others import dicts_of_their_own, infos_of_their_own_row
from sb3compat.conformance.checks.tools.singles import (
    agreeing,
    obs_like_single,
    results_like_single,
)
from sb3compat.conformance.checks.tools.standstill import no_standstill_beside_resets
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, EPISODES, SYNC, marked
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET, GYM_VECTOR
from sb3compat.conformance.findings import NO_REFERENCE
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.record import Record
from sb3compat.conformance.replays import beside

error, warning = marked(group="rows", source=GYM_AUTORESET)


@error(
    source=GYM_VECTOR,
    needs=("reference", "separate_rows"),
    after=(
        *BASICS["vector_env"],
        "seed_works_again",
        "rewards_shape",
        "obs_in_batched_space",
        "one_reset_per_episode",
    ),
)
def rows_match_reference(record: Record) -> Iterator[Demand]:
    """Each row returns the results of its single environment for the same seed and actions.

    The check compares observations, rewards and flags of the first episodes, except for the
    observations at their ends, which have checks of their own. Typical mistakes: actions that
    reach the wrong row, rewards that are cast to ints, a time limit on one side only.
    """
    steps = [each for each in beside(record) if each.kind != "start" and each.sure]
    for each in agreeing(steps, "the first step"):
        yield from results_like_single(each, "as in its single environment")
        if each.kind == "step":
            yield obs_like_single(each, "as in its single environment")


@error(
    needs=("separate_rows",),
    after=(
        *DETERMINISTIC,
        "unseeded_resets_repeatable",
        "rewards_shape",
        "obs_in_batched_space",
        "final_obs_present",
        "info_masks",
    ),
)
def rows_independent(record: Record) -> Iterator[Demand]:
    """Rows do not influence one another: no row skips or changes a step because of another.

    An environment that resets its rows together, or skips the step of all rows while it resets
    one, invents transitions in rows that go on. Compute the step of all rows, then overwrite the
    rows that are reset; the others keep their infos. If each row has a seed of its own, its results
    must not depend on the actions of another row. If one generator serves all rows, random numbers
    may depend on them; the check then looks for a row that stands still whenever another is reset.
    If the rows share a world, or statistics, declare the capability `separate_rows` as missing.
    """
    yield from infos_of_their_own_row(record)
    if record.subject.capabilities.get("own_generators"):
        clauses = others_alike, dicts_of_their_own, no_standstill_beside_resets
        yield from all_of(*clauses)(record)
    else:
        record.partly(NO_REFERENCE)
        yield from no_standstill_beside_resets(record)


nothing_kept_over_ends = warning(
    group="episode end",
    needs=("seeding", "repeatable", "separate_rows"),
    modes=("NextStep", "SameStep"),
    after=(
        *DETERMINISTIC,
        "rows_independent",
        "reset_clears_pending_autoreset",
        "reset_clears_counters",
        "autoreset_like_reset",
        "reset_step_ignores_action",
    ),
)(kept.nothing_kept_over_ends)


_ALIKE = ("seeding", "alike_rows", "separate_rows")


limits_by_row = error(needs=("separate_rows",), after=EPISODES)(limits.limits_by_row)


rows_are_alike = error(
    source=SYNC,
    needs=_ALIKE,
    after=(
        *DETERMINISTIC,
        "rows_match_reference",
        "rows_independent",
        "autoreset_like_reset",
        "final_obs_is_last",
        "obs_is_reset_obs",
        "done_step_returns_final_obs",
        "no_reset_unasked",
    ),
)(shifted.rows_are_alike)


endings_together = error(needs=_ALIKE, after=(*DETERMINISTIC, "rows_are_alike"))(
    shifted.endings_together
)
