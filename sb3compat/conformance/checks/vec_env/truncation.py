"""How a VecEnv tells truncations from terminations."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import gymnasium as gym

from sb3compat.conformance.checks.tools.limits import terminal_states_at_the_limit
from sb3compat.conformance.checks.tools.singles import ends
from sb3compat.conformance.checks.vec_env.marks import COMPARED, DUMMY_VEC_ENV, ENDINGS, marked
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Drawn, Record
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.actions import sample_source

NO_TRUNCATION = (
    "no episode was truncated, as no info has 'TimeLimit.truncated': True. Use a short time limit; "
    """with an id: --env-kwargs '{"max_episode_steps": 20}'"""
)
_NO_LIMIT = (
    "no time limit is known at which episodes do not terminate: pass the single environments, "
    "--reference package.module:name, in Python reference=[…]"
)
# So many ends at the time limit, and the time for the steps up to them.
_CUTS, _MOST_SECONDS = 5, 1.0

error, warning = marked(group="episode end", source=DUMMY_VEC_ENV)


@warning(after=ENDINGS)
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


@error(after=(*ENDINGS, "terminal_observation_in_space", "truncated_flag_exclusive"))
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


def _at_the_time_limit(scene: Scene) -> Iterator[Demand]:
    """Where the specs of single environments have a time limit, episodes are truncated there.

    In one of them the state may be terminal as well, but not in all.
    """
    _note_missing_truncation(scene)
    subject = scene.subject
    if not subject.endings:
        raise NotExercisedError("no episode ended")
    if subject.missing(("sub_envs", "two_at_once")):
        raise NotExercisedError(_NO_LIMIT)
    env = scene.make()
    specs = scene.caught(env.get_attr, "spec")
    if specs.failure is not None:
        raise NotExercisedError(_NO_LIMIT)
    limits = [_limit_of(spec, subject.step_seconds) for spec in specs.result]
    longest = max(limits, default=0)
    if not longest:
        raise NotExercisedError(_NO_LIMIT)
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


@error(after=ENDINGS)
def truncated_flag_at_truncations_only(record: Record) -> Iterator[Demand]:
    """`TimeLimit.truncated` is true neither in a row that goes on, nor where it has terminated.

    Typical mistake: `dones` are the terminations alone, so that episodes go on after their limit.
    Whether an episode has terminated is known if the info has an entry `terminated`.
    """
    for step in record.steps:
        why = dict.fromkeys(record.running(step), "the row is not done")
        for i in step.ended:
            if PRELUDE["equal"](step.infos[i].value.get("terminated"), True):
                why[i] = "the info has 'terminated': True"
        for i, reason in why.items():
            flag = step.infos[i].get("TimeLimit.truncated", False)
            yield expect("not {0}", flag, should=f"False, as {reason}", row=i)


@error(
    after=(*COMPARED, "truncated_flag_at_truncations_only"),
    without_reference=_at_the_time_limit,
)
def truncated_flag_exclusive(record: Record) -> Iterator[Demand]:
    """`TimeLimit.truncated` is true exactly if the episode was truncated and not terminated.

    Where it is true, algorithms add the value of `terminal_observation` to the reward. After a
    terminal state that is wrong, even if the time was up in the same step. Without single
    environments it is asked whether episodes are truncated at the time limit, if the specs of
    sub-environments have one, and what these specs make is truncated.
    """
    _note_missing_truncation(record)
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


@warning(after=(*ENDINGS, "truncated_flag_present"))
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
