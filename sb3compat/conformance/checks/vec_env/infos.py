"""The infos of a VecEnv at ends of episodes, of steps and of resets."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.comparing import same
from sb3compat.conformance.checks.tools.last_infos import infos_unlike_those_of_resets
from sb3compat.conformance.checks.tools.leaks import (
    infos_of_their_own_step,
    keys_of_their_own_row,
    reset_infos_of_new_resets,
)
from sb3compat.conformance.checks.tools.singles import (
    ends_with_starts,
    info_carried,
    keys_of,
    starts,
)
from sb3compat.conformance.checks.tools.statistics import statistics_of_the_episode
from sb3compat.conformance.checks.vec_env.marks import COMPARED, DUMMY_VEC_ENV, ENDINGS, marked
from sb3compat.conformance.contract import BASICS, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Record

_INFOS = (*ENDINGS, "infos_unchanged_by_later_steps")
MONITOR = SB3_SOURCE.replace("vec_env/base_vec_env", "monitor")

error, warning = marked(group="episode end", source=DUMMY_VEC_ENV)


@error(
    source=MONITOR,
    after=(*BASICS["vec_env"], "dones_shape", "infos_n_dicts", "infos_unchanged_by_later_steps"),
)
def episode_statistics_at_end_only(record: Record) -> Iterator[Demand]:
    """`infos[i]["episode"]`, the return and length of an episode, is there in rows that are done.

    SB3's algorithms append whatever they find under that key to their statistics, unless it is
    None: where it is in rows that go on, unfinished episodes count as well. Typical mistake: the
    entry of the last episode stays in a dict that each step hands out again.
    """
    for step in record.through_endings:
        for i in record.running(step):
            yield expect(
                "{0}.get('episode') is None",
                step.infos[i],
                what="{0}['episode']",
                should="no such entry, as the row is not done",
                row=i,
            )
    raise NotExercisedError("no episode ended, or each step ends all of them")


@error(source=MONITOR, after=(*_INFOS, "episode_statistics_at_end_only"))
def episode_statistics_of_the_episode(record: Record) -> Iterator[Demand]:
    """`infos[i]["episode"]` has the return `r` and the length `l` of the episode that has ended.

    Typical mistakes: they are summed up over episodes, or go on after `reset()`; the last step does
    not count, or the first one of an episode after another does not; the end of a row sets all rows
    back; there are none where episodes are truncated, so that these are in no mean. A monitor that
    counts something else, such as the frames below a wrapper that skips some, or rewards before
    they are clipped, is only noted.
    """
    yield from statistics_of_the_episode(record)


@error(after=_INFOS)
def infos_without_old_entries(record: Record) -> Iterator[Demand]:
    """`infos[i]` has no entry of another end: of the episode before, or of another row.

    Code that looks for the entry finds another end. Typical mistakes: `infos[i].update(…)` on a
    dict that is not emptied between steps; what is told of the k-th row that ends is in `infos[k]`.
    """
    yield from infos_of_their_own_step(record)


@warning(after=_INFOS)
def infos_without_others_entries(record: Record) -> Iterator[Demand]:
    """`infos[i]` has no empty entry because another row has that entry.

    `"is_success" in infos[i]` is then true of rows whose environment tells nothing: the value is
    `None`, or a number that is 0 only where that of another row is not. Typical
    mistake: a dict of arrays is split by row without its masks.
    """
    yield from keys_of_their_own_row(record)


@error(
    after=(*COMPARED, "reset_infos_n_dicts", "reset_infos_others_unchanged"),
    without_reference=reset_infos_of_new_resets,
)
def reset_infos_updated_on_autoreset(record: Record) -> Iterator[Demand]:
    """Where a row is done, `env.reset_infos[i]` is the info of the reset that followed.

    It belongs to the observation that `obs` has in that row: action masks, goals or seeds are
    read from it. An old info has the masks, goals or seeds of an earlier episode.
    """
    for start in starts(record):
        got = start.call.reset_infos[start.row]
        yield from info_carried(start, got, "the info of the new reset")


@error(after=(*ENDINGS, "reset_infos_n_dicts"))
def reset_infos_others_unchanged(record: Record) -> Iterator[Demand]:
    """Where a row is not done, `env.reset_infos[i]` stays as it was.

    Its episode goes on, so the info of its start is still valid. Typical mistake: the whole list
    is made anew whenever any row is reset.
    """
    for before, step in record.pairs:
        for i in record.running(step) if step.flags.any() else ():
            yield same(step.reset_infos[i], before.reset_infos[i], "as the row was not reset", i)
    raise NotExercisedError("no episode ended, or all rows end together")


@error(
    after=(*COMPARED, "reset_infos_n_dicts", "rewards_shape"),
    without_reference=infos_unlike_those_of_resets,
)
def done_info_is_step_info(record: Record) -> Iterator[Demand]:
    """Where a row is done, `infos[i]` is the info of the last step, not of the reset after it.

    It contains `is_success`, `episode` and the like. The info of the reset belongs into
    `env.reset_infos[i]`. Typical mistake: `obs, info = env.reset()` over the step's own
    `info`.
    """
    for end, start in ends_with_starts(record):
        got = end.call.infos[end.row]
        yield from info_carried(end, got, "and more")
        alien = sorted(keys_of(start) - set(end.alone.info.value), key=str)
        yield expect(
            f"not {{{{*{alien!r}}}}} & set({{0}})",
            got,
            should=f"without the info of the reset, {short(alien, 80)}",
            row=end.row,
        )
