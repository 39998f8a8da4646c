"""Rows of a VectorEnv: each is its own environment."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools import kept
from sb3compat.conformance.checks.tools.comparing import all_of, others_alike
from sb3compat.conformance.checks.tools.limits import limits_of_their_own
from sb3compat.conformance.checks.tools.others import (
    dicts_of_their_own,
    infos_of_their_own_row,
)
from sb3compat.conformance.checks.tools.shifted import endings_alike, rows_alike
from sb3compat.conformance.checks.tools.singles import (
    agreeing,
    obs_like_single,
    results_like_single,
)
from sb3compat.conformance.checks.tools.standstill import no_standstill_beside_resets
from sb3compat.conformance.checks.vector_env.marks import (
    DETERMINISTIC,
    EPISODES,
    SYNC,
    error,
    warning,
)
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET, GYM_VECTOR
from sb3compat.conformance.findings import NO_REFERENCE
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.record import Record
from sb3compat.conformance.replays import beside


@error(
    group="rows",
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
    group="rows",
    source=GYM_AUTORESET,
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
    if any(map(record.subject.capabilities.get, ("row_seeds", "alike_rows"))):
        clauses = others_alike, dicts_of_their_own, no_standstill_beside_resets
        yield from all_of(*clauses)(record)
    else:
        record.partly(NO_REFERENCE)
        yield from no_standstill_beside_resets(record)


nothing_kept_over_ends = warning(
    group="episode end",
    source=GYM_AUTORESET,
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


@error(
    group="rows",
    source=GYM_AUTORESET,
    needs=("separate_rows",),
    after=EPISODES,
)
def limits_by_row(record: Record) -> Iterator[Demand]:
    """A row's time limit cuts that row alone, not the episodes of other rows.

    The other rows have begun their episodes later, as an end of their own came first. Their
    episodes would be truncated at ages that have nothing to do with the limit. Typical mistake: one
    counter of steps for all rows.
    """
    yield from limits_of_their_own(record)


@error(
    group="rows",
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
)
def rows_are_alike(record: Record) -> Iterator[Demand]:
    """Row i under seed s does as row i - 1 under seed s + 1, for the same actions.

    Gymnasium's vector environments seed row i with s + i, so that both have the same seed. Typical
    mistakes: the last row is never stepped, as in `range(n - 1)`; rewards are dealt to the rows in
    reverse; the last observation of an episode is that of another row. Rows may differ by design:
    they are judged where they have done the same up to the end of an episode. If that is chance,
    declare the capability `alike_rows` as missing.
    """
    yield from rows_alike(record)


@error(
    group="rows",
    source=GYM_AUTORESET,
    needs=_ALIKE,
    after=(*DETERMINISTIC, "rows_are_alike"),
)
def endings_together(record: Record) -> Iterator[Demand]:
    """If several episodes end in one step, each row is reset, and has its own last observation.

    Typical mistakes: only the first of these rows is reset; all of them get the first observation
    of one reset; their last observations are swapped. A row is compared with the one before it
    under the next seed, which has the same seed.
    """
    yield from endings_alike(record)
