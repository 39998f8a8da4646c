"""How a VecEnv ends an episode and begins the next one, within the same step."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.clauses import in_space
from sb3compat.conformance.checks.tools.endings import several_endings
from sb3compat.conformance.checks.tools.evidence import last_like_steps, like_reset
from sb3compat.conformance.checks.tools.last_step import demand_not_stale
from sb3compat.conformance.checks.tools.singles import Beside, beside
from sb3compat.conformance.checks.tools.twins import demand_last_as_in_first_episode
from sb3compat.conformance.checks.vec_env.marks import (
    COMPARED,
    DUMMY_VEC_ENV,
    ENDINGS,
    error,
    warning,
)
from sb3compat.conformance.contract import BASICS, SB3_GUIDE
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.play import Play
from sb3compat.conformance.record import Record
from sb3compat.conformance.subject.actions import sample_seed_source

# So many ends at the time limit, and the time for the steps up to them.
_CUTS, _MOST_SECONDS = 5, 1.0
_FIRST = "obs_after_done_is_reset_obs"


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(*BASICS["vec_env"], "dones_shape", "infos_n_dicts"),
)
def terminal_observation_iff_done(record: Record) -> Iterator[Demand]:
    """`infos[i]` has `terminal_observation` where `dones[i]` is true, and nowhere else.

    When `step` returns, the row has been reset, so the last observation of the episode is in no
    other place. Algorithms bootstrap from it where an episode was truncated, and off-policy
    algorithms store it as the next observation. Without the key they silently take the first
    observation of the next episode. Set it before the row is reset, and begin each step with new
    dicts, so that no old one is left.
    """
    for step in record.through_endings:
        for i in record.rows:
            yield expect(
                "('terminal_observation' in {0}) == bool({1})",
                step.infos[i],
                step.dones[i],
                what="list({0})",
                should="with 'terminal_observation' exactly if the row is done",
                row=i,
            )


@error(group="episode end", source=SB3_GUIDE, after=(*ENDINGS, "step_obs_in_space"))
def terminal_observation_in_space(record: Record) -> Iterator[Demand]:
    """`terminal_observation` is an observation of a single environment, in its space.

    Algorithms feed it to the policy, or store it in the replay buffer, as they do with the rows
    of `obs`. Typical mistakes: the batch of all rows, a row with an axis of length one before it,
    or an observation that has not gone through the wrappers.
    """
    for step in record.endings:
        for i in step.ended:
            yield in_space(record, step.infos[i]["terminal_observation"], i)


@error(group="episode end", source=SB3_GUIDE, after=(*ENDINGS, "terminal_observation_in_space"))
def terminal_observation_not_reset_obs(play: Play) -> None:
    """`terminal_observation` is not the first observation of the next episode.

    Otherwise the value of a truncated episode is that of the next one's start, and learning goes
    wrong without an error. Typical mistake: `terminal_observation = obs[i]` is a view, and the
    row is then overwritten with the first observation of the next episode; copy it. The same
    happens to environments that write every observation into the same array.
    """
    if beside(play):
        for i in Beside(play, play.ending()).endings():
            what = f"infos[{i}]['terminal_observation']"
            if play.value(f"close(alone[{i}]['last'], alone[{i}]['obs'])"):
                continue
            last = short(play.value(f"alone[{i}]['last']"), 80)
            play.demand(
                f"not close({what}, alone[{i}]['obs'])", what, f"{last}, the last of the episode", i
            )
        return
    play.without_reference()
    for i in _rows_whose_ends_equal_starts(play):
        if not play.subject.traits.looks_first(play.value(f"row(obs, {i})")):
            continue
        what = f"infos[{i}]['terminal_observation']"
        should = f"the last observation of the episode, not the first of the next, row(obs, {i})"
        play.demand(f"not equal({what}, row(obs, {i}))", what, should, i)


@error(group="episode end", source=SB3_GUIDE, after=(*ENDINGS, "terminal_observation_in_space"))
def obs_after_done_is_reset_obs(play: Play) -> None:
    """In a row that is done, `obs` is the first observation of the next episode.

    SB3's environments reset themselves within the step. If `obs` is the last observation of the
    old episode instead, the policy's next action answers an observation of an episode that is
    over. Typical mistake: the row is reset at the next step, as in Gymnasium's NEXT_STEP mode.
    """
    if beside(play):
        singles = Beside(play, play.ending())
        for i in singles.endings():
            singles.demand(f"row(obs, {i})", "obs", "the first of the next episode", i)
        return
    play.without_reference()
    if play.draw(st.booleans()):
        _begins_anew(play)
        return
    for i in _rows_whose_ends_equal_starts(play):
        if play.subject.traits.looks_first(play.value(f"row(obs, {i})")):
            continue
        what = f"infos[{i}]['terminal_observation']"
        should = "the first observation of the next episode, not the last one of the old episode"
        play.demand(f"not equal({what}, row(obs, {i}))", f"row(obs, {i})", should, i)


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(
        *ENDINGS,
        "step_obs_in_space",
        "terminal_observation_in_space",
        _FIRST,
        "seed_used_once",
    ),
)
def autoreset_like_reset(record: Record) -> Iterator[Demand]:
    """Episodes begin after an end as they do after `reset()`.

    What each reset sets back to the same value, such as a step counter within the observation, has
    that value there, too; and what each reset draws is drawn. Typical mistakes: the reset within a
    step sets back a part of the state only, or hands out zeros.
    """
    yield from like_reset(record)


def _begins_anew(play: Play) -> None:
    """Where each reset draws a new start, the resets within steps do so as well."""
    traits = play.subject.traits
    if not (traits.continuous and traits.starts_vary and traits.resets_move):
        raise NotExercisedError(
            "equal observations may be chance: they are no vectors of floats, or do not vary"
        )
    firsts: list[list[str]] = [[] for _ in range(play.n)]
    play.run("firsts = []")
    for ended in several_endings(play, 4 * play.n):
        play.run("firsts.append(snapshot(obs))")
        for i in ended:
            firsts[i].append(f"row(firsts[{play.value('len(firsts)') - 1}], {i})")
    for i in (i for i in range(play.n) if len(firsts[i]) > 2):
        play.demand(
            f"distinct([{', '.join(firsts[i])}]) > 1",
            f"row(obs, {i})" if i in play.ended() else firsts[i][-1],
            f"a start drawn anew, as in each reset(), not the same at {len(firsts[i])} ends",
            i,
        )


def _rows_whose_ends_equal_starts(play: Play) -> list[int]:
    """The rows in which each last observation equals the first one of the next episode.

    If the observations are vectors of floats that each reset draws anew and each step changes, one
    of the two must be wrong. Otherwise they might be equal by chance.

    Raises:
        NotExercisedError: If they might be equal by chance.
    """
    traits = play.subject.traits
    if not (traits.continuous and traits.starts_vary and traits.steps_move and traits.resets_move):
        raise NotExercisedError(
            "equal observations may be chance: they are no vectors of floats, or do not vary"
        )
    same = dict.fromkeys(range(play.n), True)
    ended: list[int] = []
    for ended in several_endings(play):
        for i in ended:
            same[i] &= play.value(f"equal(infos[{i}]['terminal_observation'], row(obs, {i}))")
    return [i for i in ended if same[i]]


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(*COMPARED, "terminal_observation_in_space", "terminal_observation_not_reset_obs"),
)
def terminal_observation_is_last(play: Play) -> None:
    """`terminal_observation` is the observation that the last step of the episode led to.

    Typical mistakes: the observation before the last action, the observation of another row, zeros,
    or an observation without the processing that `obs` has been through.
    """
    if beside(play):
        singles = Beside(play, play.ending())
        for i in singles.endings():
            what = f"infos[{i}]['terminal_observation']"
            singles.demand(what, "last", "the last observation of the episode", i)
        return
    play.without_reference()
    if play.draw(st.booleans()):
        demand_last_as_in_first_episode(play, "{}infos[{}]['terminal_observation']".format)
    else:
        demand_not_stale(
            play, lambda _: "infos[{}]['terminal_observation']", lambda _: "row(before, {})"
        )


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(
        *ENDINGS,
        "terminal_observation_in_space",
        "terminal_observation_is_last",
        "obs_after_done_is_reset_obs",
    ),
)
def terminal_observation_like_others(record: Record) -> Iterator[Demand]:
    """`terminal_observation` comes about as the observations of all other steps do.

    The last observations of several episodes are held against what other steps do. Typical
    mistakes: an observation without the processing that `obs` has been through, or without the last
    frame of a stack; zeros; the observation before the last action; the first one of the next
    episode.
    """
    yield from last_like_steps(record)


@warning(group="episode end", source=DUMMY_VEC_ENV, after=ENDINGS)
def truncated_flag_present(record: Record) -> Iterator[Demand]:
    """`infos[i]` has `TimeLimit.truncated` where `dones[i]` is true.

    `dones` does not say whether an episode terminated or was truncated; this key does. Without
    it every end counts as a termination, as SB3's algorithms look it up with False as the default:
    harmless after a termination, while `truncated_flag_exclusive` judges truncations.
    Set `infos[i]["TimeLimit.truncated"] = truncated and not terminated` in each step.
    """
    for step in record.endings:
        for i in step.ended:
            yield expect(
                "'TimeLimit.truncated' in {0}",
                step.infos[i],
                what="list({0})",
                should="with 'TimeLimit.truncated', true or false",
                row=i,
            )


@error(group="episode end", source=DUMMY_VEC_ENV, after=COMPARED)
def truncated_flag_exclusive(play: Play) -> None:
    """`TimeLimit.truncated` is true exactly if the episode was truncated and not terminated.

    Where it is true, algorithms add the value of `terminal_observation` to the reward. After a
    terminal state that is wrong, even if the time was up in the same step. It is never true in a
    row that goes on. Without single environments it is asked whether episodes are truncated at the
    time limit, if the specs of sub-environments have one.
    """
    play.without_truncation()
    if not beside(play):
        play.without_reference()
        if play.draw(st.booleans()):
            _at_the_time_limit(play)
            return
    if not (beside(play) and play.draw(st.booleans())):
        for _ in play.through_ending():
            for i in play.running():
                flag = f"infos[{i}].get('TimeLimit.truncated', False)"
                play.demand(f"not {flag}", flag, "False, as the row is not done", i)
    else:
        singles = Beside(play, play.ending())
        for i in singles.endings():
            what = f"infos[{i}].get('TimeLimit.truncated', False)"
            singles.demand(f"bool({what})", "truncated", "truncated and not terminated", i)


def _at_the_time_limit(play: Play) -> None:
    """Where the specs of single environments have a time limit, episodes are truncated there.

    In one of them the state may be terminal as well, but not in all.
    """
    if play.subject.missing(("sub_envs",)) or not play.subject.endings:
        raise NotExercisedError("sub-environments cannot be reached, or no episode ended")
    play.make()
    if play.value("caught(lambda: env.get_attr('spec')) is not None"):
        raise NotExercisedError("single environments have no spec")
    play.run("limits = [getattr(spec, 'max_episode_steps', None) for spec in env.get_attr('spec')]")
    limits = play.value("limits")
    longest = max((limit for limit in limits if limit), default=0)
    if not longest or _CUTS * longest * play.subject.step_seconds > _MOST_SECONDS:
        raise NotExercisedError("no time limit is known, or it is too long")
    play.run(sample_seed_source(play.subject, play.draw(st.integers(0, 99))))
    play.open()
    lengths, cuts = [0] * play.n, [0] * play.n
    flag = "infos[{}].get('TimeLimit.truncated', False)"
    for _ in range((_CUTS + 1) * longest):
        play.step(play.sample())
        ended = play.ended()
        for i in range(play.n):
            lengths[i] += 1
            if i not in ended:
                continue
            if lengths[i] == limits[i]:
                cuts[i] += 1 if not play.value(flag.format(i)) else -_CUTS
            lengths[i] = 0
            if cuts[i] == _CUTS:
                should = f"True, as after {limits[i]} steps, the time limit, in one of {_CUTS} ends"
                play.demand(flag.format(i), flag.format(i), should, i)
    if not any(cuts):
        raise NotExercisedError("no episode lasted up to the time limit")


@warning(group="episode end", source=DUMMY_VEC_ENV, after=(*ENDINGS, "truncated_flag_present"))
def truncated_flag_is_bool(record: Record) -> Iterator[Demand]:
    """`TimeLimit.truncated` is a bool.

    A number or an array works by accident where it is asked whether it is true, and fails where
    it is negated, compared with `is`, or put into an array of flags.
    """
    for step in record.endings:
        for i in step.ended:
            yield expect(
                "isinstance({0}, (bool, np.bool_))",
                step.infos[i]["TimeLimit.truncated"],
                should="True or False",
                row=i,
            )
