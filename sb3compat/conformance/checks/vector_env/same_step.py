"""Ends of episodes in SAME_STEP mode: the next episode begins in the step that ends the last."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.endings import episode_ends
from sb3compat.conformance.checks.tools.last_step import demand_not_stale
from sb3compat.conformance.checks.tools.leaks import infos_of_autoresets
from sb3compat.conformance.checks.tools.lockstep import demand_like_single, lockstep
from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import (
    both_to_ending,
    demand_last_as_in_first_episode,
    reset_like_env,
)
from sb3compat.conformance.checks.vector_env.marks import DICT_INFO, error
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.play import Play
from sb3compat.conformance.record import Record

MODES = ("SameStep",)
AFTER = (*BASICS["vector_env"], "autoreset_mode_matches_behaviour")
FINALS = (*BASICS["vector_env"], "final_obs_present")
GROUP = "episode end: SAME_STEP"

_DONE = "ended(terminations, truncations)"


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=AFTER)
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


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=(*FINALS, "obs_in_batched_space"))
def final_obs_in_space(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode last observations are inside `single_observation_space`.

    They are used as any other observation. A wrapper that transforms observations must transform
    them, too.
    """
    space = record.attribute("single_observation_space")
    for step in record.endings:
        for i in step.ended:
            yield expect(
                "inside({1}, {0})",
                step.infos["final_obs"].row(i),
                space,
                should=f"inside {short(space.value)}",
                row=i,
            )


@error(group=GROUP, source=DICT_INFO, modes=MODES, after=FINALS)
def final_obs_mask_equals_done(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode the mask `infos["_final_obs"]` is true for the rows that ended only.

    Without a mask, or with a wrong one, code that splits infos by row, such as Gymnasium's
    `DictInfoToList`, finds last observations of episodes that go on.
    """
    default = f"np.zeros({record.num_envs}, bool)"
    for step in record.through_endings:
        yield expect(
            f"equal({{0}}.get('_final_obs', {default}), ended({{1}}, {{2}}))",
            step.infos,
            step.terminations,
            step.truncations,
            what="{0}.get('_final_obs')",
            should=f"{short(step.flags)}: the rows that ended",
        )


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=FINALS)
def obs_is_reset_obs(play: Play) -> None:
    """In SAME_STEP mode the observation of a row that ended is the first of its next episode.

    An agent that sees the last observation acts on a state that is gone, and the first transition
    of each episode is wrong. The rows are compared with single environments, or, if each row has
    a seed of its own and steps draw nothing, with a `reset()` at the same point.
    """
    if play.subject.referenced:
        i = play.draw(st.integers(0, play.n - 1))
        for event in lockstep(play, i):
            if event == "end":
                demand_like_single(play, i, "the first one of the next episode")
        return
    play.without_reference()
    i = _with_known_start(play)
    got, known = at(play, "obs", i), at(play, "twin_obs", i)
    play.demand(
        f"not equal({got}, {_final(play, i)}) or equal({got}, {known})",
        got,
        f"{short(play.value(known))}, as after a reset, not the last one of the episode before",
        i,
    )


def _with_known_start(play: Play) -> int:
    """Step to an ending of a row, and reset the twin just before it instead.

    Raises:
        NotExercisedError: If the two may differ for other reasons.
    """
    known = play.subject.capabilities.get("row_seeds") or play.n == 1
    if not known or not play.subject.capabilities.get("seeding"):
        raise NotExercisedError("rows have no seeds of their own, or it takes none")
    rows = both_to_ending(play, behind=1)
    if play.script.steps < 2:
        raise NotExercisedError("an episode ends in its first step")
    play.run("twin_obs, twin_infos = twin.reset()")
    play.run("third = make_env()")
    play.run(reset_like_env(play, "third"))
    play.run("undisturbed = third.reset()[0]")
    i = play.draw(st.sampled_from(rows))
    if not play.value(f"equal({at(play, 'undisturbed', i)}, {at(play, 'twin_obs', i)})"):
        raise NotExercisedError("steps draw random numbers, too")
    return i


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=FINALS)
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
    group=GROUP,
    source=GYM_AUTORESET,
    modes=MODES,
    after=(*FINALS, "final_obs_in_space", "final_obs_not_aliased"),
)
def final_obs_is_last(play: Play) -> None:
    """In SAME_STEP mode `infos["final_obs"]` has the observation that the last step led to.

    Typical mistakes: the observation before the last action, that of another row or of an earlier
    episode, the first one of the next, zeros. Without a reference, the check fails if the last
    observations of truncated episodes are those of the step before, whatever the last action is.
    """
    if play.subject.referenced:
        i = play.draw(st.integers(0, play.n - 1))
        for event in lockstep(play, i, episodes=play.draw(st.integers(1, 2))):
            if event == "end":
                got = _final(play, i)
                should = f"{short(play.value('final'))}, the last one of the episode"
                play.demand(f"agrees({got}, final)", got, should, i)
        return
    play.without_reference()
    way = play.draw(st.sampled_from(("first", "step", "episode")))
    if way == "first":
        _not_the_next_first(play)
    elif way == "episode":
        demand_last_as_in_first_episode(play, "row({}infos['final_obs'], {})".format)
    else:
        demand_not_stale(
            play, lambda _: "row(infos['final_obs'], {})", partial(at, name="before", i=None)
        )


def _not_the_next_first(play: Play) -> None:
    i = episode_ends(play)
    if _obs_known_wrong(play):
        raise NotExercisedError("the first observation is the wrong one")
    should = f"the last ones, not the first of the next: {short(play.value('first'))}"
    play.demand("not all(map(equal, last, first))", "last", should, i)


def _obs_known_wrong(play: Play) -> bool:
    """Whether the first observation, if it equals the last one, is the wrong one."""
    probe = play.aside()
    try:
        i = _with_known_start(probe)
        return not probe.value(f"equal({at(probe, 'obs', i)}, {at(probe, 'twin_obs', i)})")
    except NotExercisedError:
        return False
    finally:
        probe.script.close()


def _final(play: Play, i: int) -> str:
    return f"row(infos['final_obs'], {i})"


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=FINALS)
def final_info_is_step_info(play: Play) -> None:
    """In SAME_STEP mode `infos["final_info"]` has the ending step's infos, the rest the reset's.

    Measurements of the last step, success above all, are in `final_info` only. If the infos of
    the reset overwrite it, every episode looks unfinished.
    """
    if play.subject.referenced and play.draw(st.booleans()):
        i = play.draw(st.integers(0, play.n - 1))
        for event in lockstep(play, i, infos=True):
            if event == "end":
                _holds(play, i, "info_of(infos['final_info'], {})", "final_info", "the last step")
                _holds(play, i, "info_of(infos, {})", "info", "the reset")
        return
    if not play.subject.referenced:
        play.without_reference()
    for number in play.through_ending(after=0):
        if number == 1:
            play.run("steps = {}")
        if not play.ended():
            play.run("steps.update(infos)")
    if not play.value("steps"):  # there are no infos
        raise NotExercisedError("steps have no infos")
    default = f"np.zeros({play.n}, bool)"
    play.demand(
        "isinstance(infos.get('final_info'), dict) and "
        f"equal(infos.get('_final_info', {default}), {_DONE})",
        "{key: infos[key] for key in infos if 'final_info' in key}",
        f"a dict with the infos of the step, and the mask {short(play.value(_DONE))}",
    )
    _not_swapped(play)


@error(group=GROUP, source=GYM_AUTORESET, modes=MODES, after=(*FINALS, "final_info_is_step_info"))
def infos_of_the_autoreset(record: Record) -> Iterator[Demand]:
    """In SAME_STEP mode `infos` of an ending step has what the reset of the row gives.

    Masks, goals and seeds of the new episode are read from it. `infos["final_info"]` has none of
    the entries that resets alone give. Typical mistake: the infos of the reset are dropped, or put
    into `final_info`, too.
    """
    yield from infos_of_autoresets(record)


def _holds(play: Play, i: int, got: str, name: str, what: str) -> None:
    got = got.format(i)
    play.demand(
        f"all(key in {got} and agrees({got}[key], {name}[key]) for key in {name})",
        got,
        f"{short(play.value(name))}, the infos of {what}",
        i,
    )


def _not_swapped(play: Play) -> None:
    """Keys that only steps or only resets have tell their infos apart."""
    play.run("other = make_env()")
    play.run(f"resets = {reset_like_env(play, 'other')}[1]")
    steps, resets = play.value("set(steps)"), play.value("set(resets)")
    only_step, only_reset = (sorted(keys, key=str) for keys in (steps - resets, resets - steps))
    if not only_step or not only_reset:
        return
    for i in play.ended():
        for infos, wanted, other, what in (
            ("infos['final_info']", only_step, only_reset, "the step"),
            ("infos", only_reset, only_step, "the reset"),
        ):
            keys = f"set(info_of({infos}, {i}))"
            play.demand(
                f"{keys} & set({wanted}) or not {keys} & set({other})",
                f"info_of({infos}, {i})",
                f"the infos of {what}, which have {wanted} and not {other}",
                i,
            )
