"""Each row of a VecEnv is one environment, stepped once in each step."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools import kept, limits, shifted
from sb3compat.conformance.checks.tools.comparing import all_of, others_alike
from sb3compat.conformance.checks.tools.others import dicts_of_their_own, infos_of_their_own_row
from sb3compat.conformance.checks.tools.singles import (
    agreeing,
    by_ends_before,
    obs_like_single,
    results_like_single,
    steps_after_starts,
)
from sb3compat.conformance.checks.tools.standstill import (
    no_standstill_after_ends,
    no_standstill_beside_resets,
)
from sb3compat.conformance.checks.vec_env.marks import COMPARED, DETERMINISTIC, ENDINGS, marked
from sb3compat.conformance.contract import SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.record import Record
from sb3compat.conformance.replays import beside

_ALIKE = ("seeding", "alike_rows", "separate_rows")
_COMPARED = (*COMPARED, "rewards_shape")

error, warning = marked(group="episode end", source=SB3_GUIDE)


@error(
    group="step",
    needs=("reference", "seeding", "separate_rows"),
    after=(
        *DETERMINISTIC,
        "dones_shape",
        "rewards_shape",
        "seed_returns_n",
        "seeds_differ_by_row",
        "seed_works_again",
        "step_obs_in_space",
        "step_equals_async_wait",
    ),
)
def rows_match_reference(record: Record) -> Iterator[Demand]:
    """Row i returns the results of its single environment under the same seed and actions.

    The comparison ends with the first end of an episode in any row; other checks begin there.
    Typical mistakes: actions or rewards that go to another row, a seed that is not `seed + i`,
    processing that the single environment does not have.
    """
    for start in beside(record):
        if start.seeded:
            yield obs_like_single(start, "the first observation of the single environment")
    for each, over in by_ends_before(record):
        if not each.sure or any(end is not each.call for end in over):
            continue
        if not over or each.kind == "end":
            yield from results_like_single(each, "as in the single environment")
        if not over:
            yield obs_like_single(each, "the single environment's observation")


@error(after=(*_COMPARED, "rows_independent"), without_reference=no_standstill_after_ends)
def no_phantom_transition(record: Record) -> Iterator[Demand]:
    """The step after the end of an episode is an ordinary one: it takes the action.

    n rows and k steps are n * k transitions, no more and no fewer. Typical mistake: an
    environment in NEXT_STEP mode underneath, which ignores the action after an end and returns a
    reward of zero.
    """
    for each in agreeing(steps_after_starts(record), "a step after an end"):
        yield from results_like_single(each, "as in a step that takes the action")
        if each.kind == "step":
            yield obs_like_single(each, "as after a step with this action")


nothing_kept_over_ends = warning(
    needs=("seeding", "repeatable", "separate_rows"),
    after=(
        *_COMPARED,
        "seed_applies_at_next_reset_only",
        "reset_starts_fresh_episodes",
        "autoreset_like_reset",
    ),
)(kept.nothing_kept_over_ends)


def _by_other_actions_and_standstill(record: Record) -> Iterator[Demand]:
    yield from infos_of_their_own_row(record)
    # Other actions may change the random numbers of all rows, if these share a generator.
    own = record.subject.capabilities.get("own_generators")
    clauses = [others_alike, dicts_of_their_own] if own else []
    yield from all_of(*clauses, no_standstill_beside_resets)(record)


@error(
    needs=("separate_rows",),
    after=(*_COMPARED, "unseeded_resets_repeatable"),
    without_reference=_by_other_actions_and_standstill,
)
def rows_independent(record: Record) -> Iterator[Demand]:
    """The end of an episode in one row leaves the other rows alone.

    The other rows are stepped in the same step, with their own actions, and are not reset.
    Typical mistakes: while one row is reset, the others stand still for a step, are reset, too, or
    lose their infos.
    If the rows share a world, or statistics, declare the capability `separate_rows` as missing.
    """
    yield from infos_of_their_own_row(record)
    found = [
        each
        for each, over in by_ends_before(record)
        if over and not (each.kind == "end" and each.alone_is_over)
    ]
    for each in agreeing(found, "an end of another row"):
        yield from results_like_single(each, "as without an end in another row")
        yield obs_like_single(each, "as without an end in another row")


limits_by_row = error(needs=("separate_rows",), after=ENDINGS)(limits.limits_by_row)


rows_are_alike = error(
    group="step",
    source=SB3_SOURCE,
    needs=_ALIKE,
    after=(
        *_COMPARED,
        "seed_works_again",
        "rows_match_reference",
        "rows_independent",
        "autoreset_like_reset",
        "no_phantom_transition",
        "terminal_observation_is_last",
        "obs_after_done_is_reset_obs",
    ),
)(shifted.rows_are_alike)


endings_together = error(needs=_ALIKE, after=(*_COMPARED, "rows_are_alike"))(
    shifted.endings_together
)
