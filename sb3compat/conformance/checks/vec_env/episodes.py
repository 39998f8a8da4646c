"""How a VecEnv ends an episode and begins the next one, within the same step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import gymnasium as gym

from sb3compat.conformance.checks.tools.clauses import dtypes_of_lasts_fit, in_space
from sb3compat.conformance.checks.tools.comparing import all_of, last_as_in_first_episode
from sb3compat.conformance.checks.tools.first_observations import like_reset, starts_drawn_anew
from sb3compat.conformance.checks.tools.last_observations import ends_unlike_starts, last_like_steps
from sb3compat.conformance.checks.tools.limits import (
    rewards_at_the_limit,
    terminal_states_at_the_limit,
)
from sb3compat.conformance.checks.tools.singles import (
    ends,
    ends_with_starts,
    firsts_like_singles,
    lasts_like_singles,
)
from sb3compat.conformance.checks.tools.standstill import lasts_moved_on
from sb3compat.conformance.checks.vec_env.marks import (
    COMPARED,
    DUMMY_VEC_ENV,
    ENDINGS,
    error,
    warning,
)
from sb3compat.conformance.contract import BASICS, SB3_GUIDE
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Drawn, Record
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.actions import sample_source

NO_TRUNCATION = (
    "no episode was truncated, as no info has 'TimeLimit.truncated': True. Use a short time limit; "
    """with an id: --env-kwargs '{"max_episode_steps": 20}'"""
)
# So many ends at the time limit, and the time for the steps up to them.
_CUTS, _MOST_SECONDS = 5, 1.0
_FIRST = "obs_after_done_is_reset_obs"

close = PRELUDE["close"]


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
    dicts, so that no old one is left. The value None counts as no entry, as in SB3's algorithms.
    """
    for step in record.through_endings:
        ended = step.ended
        for i in record.rows:
            words = ("with", "") if i in ended else ("without", "not ")
            yield expect(
                "({0}.get('terminal_observation') is not None) == bool({1})",
                step.infos[i],
                step.dones[i],
                what="list({0})",
                should="{} 'terminal_observation', as the row is {}done".format(*words),
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


@warning(group="episode end", source=SB3_GUIDE, after=(*ENDINGS, "terminal_observation_in_space"))
def terminal_observation_dtype(record: Record) -> Iterator[Demand]:
    """`terminal_observation` has the dtype of its space, as `obs` has.

    A batch takes the dtype of its array, and what is copied from the simulator, or from the single
    environment, keeps its own: the value of a last observation is computed from other numbers.
    """
    yield from dtypes_of_lasts_fit(record)


def _lasts_unlike_starts(record: Record) -> Iterator[Demand]:
    yield from ends_unlike_starts(record, "last")


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(*ENDINGS, "terminal_observation_in_space"),
    without_reference=_lasts_unlike_starts,
)
def terminal_observation_not_reset_obs(record: Record) -> Iterator[Demand]:
    """`terminal_observation` is not the first observation of the next episode.

    Otherwise the value of a truncated episode is that of the next one's start, and learning goes
    wrong without an error. Typical mistake: `terminal_observation = obs[i]` is a view, and the
    row is then overwritten with the first observation of the next episode; copy it. The same
    happens to environments that write every observation into the same array.
    """
    for end, start in ends_with_starts(record):
        first, last, got = start.alone.obs, end.alone.obs, end.episode.last
        if not close(last.value, first.value):
            should = "the last observation of the episode"
            yield expect("not close({0}, {1})", got, first, should=should, row=end.row, like=last)


def _starts_by_evidence(record: Record) -> Iterator[Demand]:
    yield from all_of(starts_drawn_anew(record), ends_unlike_starts(record, "first"))


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(*ENDINGS, "terminal_observation_in_space"),
    without_reference=_starts_by_evidence,
)
def obs_after_done_is_reset_obs(record: Record) -> Iterator[Demand]:
    """In a row that is done, `obs` is the first observation of the next episode.

    SB3's environments reset themselves within the step. If `obs` is the last observation of the
    old episode instead, the policy's next action answers an observation of an episode that is
    over. Typical mistake: the row is reset at the next step, as in Gymnasium's NEXT_STEP mode.
    """
    yield from firsts_like_singles(record, "the first of the next episode")


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(
        *ENDINGS,
        "step_obs_in_space",
        "terminal_observation_in_space",
        _FIRST,
        "seed_used_once",
        "rows_independent",
        "no_phantom_transition",
    ),
)
def autoreset_like_reset(record: Record) -> Iterator[Demand]:
    """Episodes begin after an end as they do after `reset()`.

    What each reset sets back to the same value, such as a step counter within the observation, has
    that value there, too; and what each reset draws is drawn. Typical mistakes: the reset within a
    step sets back a part of the state only, or hands out zeros.
    """
    yield from like_reset(record)


def _last_by_evidence(record: Record) -> Iterator[Demand]:
    yield from all_of(lasts_moved_on(record), last_as_in_first_episode(record))


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(*COMPARED, "terminal_observation_in_space", "terminal_observation_not_reset_obs"),
    without_reference=_last_by_evidence,
)
def terminal_observation_is_last(record: Record) -> Iterator[Demand]:
    """`terminal_observation` is the observation that the last step of the episode led to.

    Typical mistakes: the observation before the last action, the observation of another row, zeros,
    or an observation without the processing that `obs` has been through.
    """
    yield from lasts_like_singles(record)


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
    """`terminal_observation` is computed like the observations of all other steps.

    The last observations of several episodes are held against what other steps do. Typical
    mistakes: an observation without the processing that `obs` has been through, or without the last
    frame of a stack; an image that is reshaped instead of transposed; zeros; the observation before
    the last action; the first one of the next episode.
    """
    yield from last_like_steps(record)


@error(
    group="episode end",
    source=SB3_GUIDE,
    after=(*ENDINGS, "rewards_shape", "episode_statistics_of_the_episode"),
)
def last_reward_like_others(record: Record) -> Iterator[Demand]:
    """The reward of the step that a time limit ends is that of its action, as in other steps.

    Typical mistake: the reset within the step sets back the array of rewards before it is returned,
    so that the reward of each last step is 0. It can be told where no other reward is 0.
    """
    yield from rewards_at_the_limit(record)


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


@error(
    group="episode end",
    source=DUMMY_VEC_ENV,
    after=(*ENDINGS, "terminal_observation_in_space", "truncated_flag_exclusive"),
)
def terminal_states_are_no_truncations(record: Record) -> Iterator[Demand]:
    """`TimeLimit.truncated` is false in a terminal state, also in the last step of a time limit.

    The observations of many episodes show which states are terminal, if there are few of them.
    Typical mistake: `infos[i]["TimeLimit.truncated"] = steps >= limit`, without
    `and not terminated`.
    """
    yield from terminal_states_at_the_limit(record)


def _note_missing_truncation(given: Record | Scene) -> None:
    if not given.subject.truncates:
        given.partly(NO_TRUNCATION)


def _other_rows_are_not_truncated(record: Record, step: Call) -> Iterator[Demand]:
    """Neither rows that go on, nor those whose own info says that the episode has terminated."""
    why = dict.fromkeys(record.running(step), "the row is not done")
    for i in step.ended:
        if PRELUDE["equal"](step.infos[i].value.get("terminated"), True):
            why[i] = "the info has 'terminated': True"
    for i, reason in why.items():
        flag = step.infos[i].get("TimeLimit.truncated", False)
        yield expect("not {0}", flag, should=f"False, as {reason}", row=i)


def _flag_of_running_rows_or_at_the_limit(scene: Scene) -> Iterator[Demand]:
    _note_missing_truncation(scene)
    if scene.choose((False, True)):
        yield from _at_the_time_limit(scene)
        return
    ending = scene.ending()
    env = scene.make()
    env.to_an_end(ending)
    act = env.acting(ending)
    for _ in range(scene.choose(range(5))):
        env.step(act())
    for step in env.record.steps:
        yield from _other_rows_are_not_truncated(env.record, step)


@error(
    group="episode end",
    source=DUMMY_VEC_ENV,
    after=COMPARED,
    without_reference=_flag_of_running_rows_or_at_the_limit,
)
def truncated_flag_exclusive(record: Record) -> Iterator[Demand]:
    """`TimeLimit.truncated` is true exactly if the episode was truncated and not terminated.

    Where it is true, algorithms add the value of `terminal_observation` to the reward. After a
    terminal state that is wrong, even if the time was up in the same step. It is never true in a
    row that goes on. Without single environments it is asked whether episodes are truncated at the
    time limit, if the specs of sub-environments have one, and what these specs make is truncated.
    """
    _note_missing_truncation(record)
    for step in record.through_endings:
        yield from _other_rows_are_not_truncated(record, step)
    for end in ends(record):
        flag = end.call.infos[end.row].get("TimeLimit.truncated", False)
        terminated, truncated = end.alone.terminated, end.alone.truncated
        cut = bool(truncated.value and not terminated.value)
        yield expect(
            "bool({0}) == bool({1} and not {2})",
            flag,
            truncated,
            terminated,
            should=f"{cut}, truncated and not terminated",
            row=end.row,
        )


def _at_the_time_limit(scene: Scene) -> Iterator[Demand]:
    """Where the specs of single environments have a time limit, episodes are truncated there.

    In one of them the state may be terminal as well, but not in all.
    """
    subject = scene.subject
    if subject.missing(("sub_envs", "two_at_once")) or not subject.endings:
        raise NotExercisedError("sub-environments cannot be reached, or no episode ended")
    env = scene.make()
    specs = scene.caught(env.get_attr, "spec")
    if specs.failure is not None:
        raise NotExercisedError("single environments have no spec")
    limits = [_limit_of(spec, subject.step_seconds) for spec in specs.result]
    longest = max(limits, default=0)
    if not longest:
        raise NotExercisedError("no time limit is known at which episodes do not terminate")
    env.action_space.seed(scene.choose(range(100)))
    env.restart(scene.seed() if subject.capabilities.get("seeding") else None)
    sampled = Drawn(sample_source(subject))
    lengths, cuts = [0] * scene.n, [0] * scene.n
    for _ in range((_CUTS + 1) * longest):
        step = env.step(sampled)
        for i in scene.rows:
            lengths[i] += 1
            if i not in step.ended:
                continue
            flag = step.infos[i].get("TimeLimit.truncated", False)
            if lengths[i] == limits[i]:
                cuts[i] += 1 if not flag.value else -_CUTS
            lengths[i] = 0
            if cuts[i] == _CUTS:
                should = f"True, as after {limits[i]} steps, the time limit, in one of {_CUTS} ends"
                yield expect("{0}", flag, should=should, row=i)
    if not any(cuts):
        raise NotExercisedError("no episode lasted up to the time limit")
    scene.judged = True


def _limit_of(spec: Any, step_seconds: float) -> int:
    """The time limit of a spec, if what it makes does not terminate there; else, or if long, 0."""
    limit = getattr(spec, "max_episode_steps", None) or 0
    if not limit or 2 * _CUTS * limit * step_seconds > _MOST_SECONDS:
        return 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an older version, for example
            env = gym.make(spec, disable_env_checker=True)
        with closing(env):
            return limit if _only_truncated_at(limit, env) else 0
    except Exception:  # nothing can be made from it
        return 0


def _only_truncated_at(limit: int, env: gym.Env[Any, Any]) -> bool:
    """Whether a single environment never terminates in the last step before its limit."""
    env.action_space.seed(0)
    env.reset(seed=0)
    steps, cut = 0, False
    for _ in range(_CUTS * limit):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        steps += 1
        if terminated or truncated:
            if steps == limit and terminated:
                return False
            cut |= steps == limit
            env.reset()
            steps = 0
    return cut


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
