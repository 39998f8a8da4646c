"""Ends of episodes in SAME_STEP mode: the next episode begins in the step that ends the last."""

from __future__ import annotations

from collections.abc import Iterator

from gymnasium.vector.utils import batch_space

from sb3compat.conformance.checks.tools.clauses import dtypes_of_lasts_fit
from sb3compat.conformance.checks.tools.comparing import all_of, last_as_in_first_episode
from sb3compat.conformance.checks.tools.evidence import CHANCE, FEWEST, STEPS, not_all_alike
from sb3compat.conformance.checks.tools.last_infos import infos_count_the_last_step
from sb3compat.conformance.checks.tools.last_observations import (
    lasts_unlike_starts,
    starts_unlike_lasts,
)
from sb3compat.conformance.checks.tools.singles import (
    ends_with_starts,
    firsts_like_singles,
    info_carried,
    keys_of,
    lasts_like_singles,
)
from sb3compat.conformance.checks.tools.standstill import lasts_moved_on
from sb3compat.conformance.checks.tools.strays import strays_are_no_starts
from sb3compat.conformance.checks.vector_env.marks import DICT_INFO, EPISODES, marked
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import Episode, by_row
from sb3compat.conformance.values import Several

equal, distinct = PRELUDE["equal"], PRELUDE["distinct"]

FINALS = (*BASICS["vector_env"], "final_obs_present")

error, warning = marked(group="episode end: SAME_STEP", source=GYM_AUTORESET, modes=("SameStep",))


@error(after=EPISODES)
def final_obs_present(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode `infos["final_obs"]` has the last observation of each row that ended.

    The observation returned is the first of the next episode. Without the last one there is no
    state to bootstrap a truncated episode from. The key was `final_observation` before Gymnasium
    1.0.
    """
    for step in record.endings:
        for i in step.ended:
            yield expect(
                f"'final_obs' in {{0}} and row({{0}}['final_obs'], {i}) is not None",
                step.infos,
                what="list({0})",
                should=f"with 'final_obs', and a value for row {i}",
                row=i,
            )


@error(after=(*FINALS, "obs_in_batched_space"))
def final_obs_in_space(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode last observations are inside `single_observation_space`.

    They are used as any other observation. A wrapper that transforms observations must transform
    them, too. Where `observation_space` has other bounds for some rows, the structure is judged.
    """
    space = record.attribute("single_observation_space")
    whole = record.attribute("observation_space").value
    bounds = "" if whole == batch_space(space.value, record.num_envs) else ", bounded=False"
    for step in record.endings:
        for i in step.ended:
            yield expect(
                f"inside({{1}}, {{0}}{bounds})",
                step.infos["final_obs"].row(i),
                space,
                should=f"inside {short(space.value)}",
                row=i,
            )


@warning(after=(*FINALS, "final_obs_in_space"))
def final_obs_dtype(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode `infos["final_obs"]` has the dtype of the space, as the observations have.

    A batch takes the dtype of its array, and what is copied from the simulator, or from the single
    environment, keeps its own: the value of a last observation is computed from other numbers.
    """
    yield from dtypes_of_lasts_fit(record)


@error(source=DICT_INFO, after=FINALS)
def final_obs_mask_equals_done(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode the mask `infos["_final_obs"]` is true for the rows that ended only.

    So is `infos["_final_info"]`, if there is one. Without a mask, or with a wrong one, code that
    splits infos by row, such as Gymnasium's `DictInfoToList`, finds last observations of episodes
    that go on, or does not find those of some that ended.
    """
    default = f"np.zeros({record.num_envs}, bool)"
    for step in record.through_endings:
        for key in ("_final_obs", *({"_final_info"} & set(step.infos.value))):
            yield expect(
                f"equal({{0}}.get({key!r}, {default}), ended({{1}}, {{2}}))",
                step.infos,
                step.terminations,
                step.truncations,
                what=f"{{0}}.get({key!r})",
                should=f"{short(step.flags)}: the rows that ended",
            )


@error(
    after=(*FINALS, "final_obs_in_space", "obs_in_batched_space"),
    without_reference=starts_unlike_lasts,
)
def obs_is_reset_obs(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode the observation of a row that ended is the first of its next episode.

    An agent that sees the last observation acts on a state that is gone, and the first transition
    of each episode is wrong. The rows are compared with single environments. Without a reference,
    the check fails if at all ends these observations are the last ones, and lie beyond those after
    resets.
    """
    yield from firsts_like_singles(record)


@error(after=FINALS)
def final_obs_not_aliased(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode the last observation is a copy that the reset does not overwrite.

    `final_obs = self.obs[i]` is a view: when the reset writes the next first observation into the
    same row, the last one is gone, and truncated episodes are bootstrapped from a fresh start.
    Copy it before the reset. Gymnasium's own environments do not copy it either, so the check
    fails for a sub-environment that returns the same array each time.
    """
    for step in record.endings:
        for i in step.ended:
            was = step.infos["final_obs"].row(i)
            should = f"{short(was.value)}, as it was before later steps"
            held = step.infos.held["final_obs"].row(i)
            yield expect("equal({0}, {1})", held, was, should=should, row=i)


@error(
    after=(*FINALS, "final_obs_in_space", "final_obs_not_aliased", "obs_is_reset_obs"),
    without_reference=all_of(
        lasts_unlike_starts, lasts_moved_on, last_as_in_first_episode, strays_are_no_starts
    ),
)
def final_obs_is_last(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode `infos["final_obs"]` has the observation that the last step led to.

    Typical mistakes: the observation before the last action, that of another row or of an earlier
    episode, the first one of the next, zeros. Without a reference, the check fails if at all
    ends it is the first one of the next, or the one of the step before.
    """
    yield from lasts_like_singles(record)


def _final_info_there_and_not_swapped(record: Record) -> Iterator[Demand]:
    usual = _keys_of_steps(record)
    if not usual:
        raise NotExercisedError("steps have no infos")
    for end in record.endings:
        yield _has_final_info(record, end)
    yield from _not_of_the_reset(record)
    yield from infos_count_the_last_step(record)
    resets = set[object]().union(*(set(reset.infos.value) for reset in record.resets))
    only_step, only_reset = usual - resets, resets - usual
    if not only_step or not only_reset:
        return
    for end in record.endings:
        for i in end.ended:
            for infos, wanted, other, what in (
                (end.infos["final_info"], only_step, only_reset, "the step"),
                (end.infos, only_reset, only_step, "the reset"),
            ):
                own, alien = (sorted(keys, key=str) for keys in (wanted, other))
                yield expect(
                    f"set({{0}}) & set({own!r}) or not set({{0}}) & set({alien!r})",
                    infos.info(i),
                    should=f"the infos of {what}, which have {own} and not {alien}",
                    row=i,
                )


def _not_of_the_reset(record: Record) -> Iterator[Demand]:
    """`final_info` is not what the reset gives, at all ends of episodes of different lengths.

    That needs an entry that changes in an episode, and that each reset sets back to one value. The
    info of the row is then the reset's as well, or that of the step: the two are swapped.
    """
    for i, found in enumerate(by_row(record)):
        over = [episode for episode in found if episode.over]
        if len({len(episode.steps) for episode in over}) < 2:
            continue
        finals = [episode.end.infos["final_info"].info(i) for episode in over]
        starts = [episode.end.infos.info(i) for episode in over]
        shared = set(finals[0].value).intersection(*(infos.value for infos in (*finals, *starts)))
        asked = [episode for episode in found if episode.by != "auto"]
        for key in (key for key in shared if asked and _is_set_back(asked, i, key, len(over))):
            first = asked[0].start.infos.info(i)[key]
            if not any(equal(start.value[key], first.value) for start in starts):
                yield expect(
                    "not all(equal(each, {0}) for each in {1})",
                    first,
                    Several([final[key] for final in finals]),
                    finals[-1],
                    what="{2}",
                    should=f"the infos of the step, but {key!r} is that of a reset at each end",
                    row=i,
                )
        if all(
            equal(final.value[key], start.value[key])
            for key in shared
            for final, start in zip(finals, starts, strict=True)
        ):
            for key in (key for key in shared if _is_set_back(found, i, key, len(over))):
                pair = [final[key] for final in finals], [start[key] for start in starts]
                should = f"the infos of the step, not those of the reset, as {key!r} shows"
                yield not_all_alike(*pair, should, i, finals[-1])


def _is_set_back(found: list[Episode], i: int, key: str, ends: int) -> bool:
    """Whether resets set it to one value, which is no chance at so many ends."""
    infos = [step.infos.info(i).value for e in found for step in (e.start, *e.steps[:-1])]
    if not all(key in info for info in infos):
        return False
    starts = [episode.start.infos.info(i).value[key] for episode in found]
    later = [step.infos.info(i).value[key] for episode in found for step in episode.steps[:-1]]
    same = sum(equal(value, starts[0]) for value in later)
    return (
        distinct(starts) == 1
        and len(later) >= STEPS
        and distinct(later) >= FEWEST
        and ((same + 1) / (len(later) + 2)) ** ends < CHANCE
    )


def _keys_of_steps(record: Record) -> set[object]:
    """The keys of the infos of steps in which no row ends."""
    found = (step.infos.value for step in record.steps if not step.flags.any())
    return set[object]().union(*map(set, found))


def _has_final_info(record: Record, end: Call) -> Demand:
    default = f"np.zeros({record.num_envs}, bool)"
    over = short(end.flags)
    return expect(
        "isinstance({0}.get('final_info'), dict) and "
        f"equal({{0}}.get('_final_info', {default}), ended({{1}}, {{2}}))",
        end.infos,
        end.terminations,
        end.truncations,
        what="{{key: {0}[key] for key in {0} if 'final_info' in key}}",
        should=f"a dict with the infos of the step, and the mask {over}",
    )


@error(after=(*FINALS, "rewards_shape"), without_reference=_final_info_there_and_not_swapped)
def final_info_is_step_info(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode `infos["final_info"]` has the ending step's infos, the rest the reset's.

    Measurements of the last step, success above all, are in `final_info` only. If the infos of
    the reset overwrite it, every episode looks unfinished.
    """
    if _keys_of_steps(record):
        yield from _final_info_there_and_not_swapped(record)
    for end, start in ends_with_starts(record):
        if keys_of(end):
            yield _has_final_info(record, end.call)
            got = end.call.infos["final_info"].info(end.row)
            yield from info_carried(end, got, "the infos of the last step")
        yield from info_carried(start, end.call.infos.info(end.row), "the infos of the reset")
