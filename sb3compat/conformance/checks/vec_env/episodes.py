"""How a VecEnv ends an episode and begins the next one, within the same step."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools import first_observations, last_rewards
from sb3compat.conformance.checks.tools.clauses import dtypes_of_lasts_fit, in_space
from sb3compat.conformance.checks.tools.comparing import all_of, last_as_in_first_episode
from sb3compat.conformance.checks.tools.first_observations import starts_drawn_anew
from sb3compat.conformance.checks.tools.last_observations import (
    last_like_steps,
    lasts_unlike_starts,
    starts_unlike_lasts,
)
from sb3compat.conformance.checks.tools.singles import (
    ends_with_starts,
    firsts_like_singles,
    lasts_like_singles,
)
from sb3compat.conformance.checks.tools.standstill import lasts_moved_on
from sb3compat.conformance.checks.tools.strays import strays_are_no_starts
from sb3compat.conformance.checks.vec_env.marks import COMPARED, ENDINGS, marked
from sb3compat.conformance.contract import BASICS, SB3_GUIDE
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Record

close = PRELUDE["close"]

error, warning = marked(
    group="episode end", source=SB3_GUIDE, after=(*ENDINGS, "terminal_observation_in_space")
)


@error(after=(*BASICS["vec_env"], "dones_shape", "infos_n_dicts"))
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


@error(after=(*ENDINGS, "step_obs_in_space"))
def terminal_observation_in_space(record: Record) -> Iterator[Demand]:
    """`terminal_observation` is an observation of a single environment, in its space.

    Algorithms feed it to the policy, or store it in the replay buffer, as they do with the rows
    of `obs`. Typical mistakes: the batch of all rows, a row with an axis of length one before it,
    or an observation that has not gone through the wrappers.
    """
    for step in record.endings:
        for i in step.ended:
            yield in_space(record, step.infos[i]["terminal_observation"], i)


@warning()
def terminal_observation_dtype(record: Record) -> Iterator[Demand]:
    """`terminal_observation` has the dtype of its space, as `obs` has.

    A batch takes the dtype of its array, and what is copied from the simulator, or from the single
    environment, keeps its own: the value of a last observation is computed from other numbers.
    """
    yield from dtypes_of_lasts_fit(record)


@error(without_reference=all_of(lasts_unlike_starts, strays_are_no_starts))
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


@error(
    without_reference=all_of(starts_drawn_anew, starts_unlike_lasts),
)
def obs_after_done_is_reset_obs(record: Record) -> Iterator[Demand]:
    """In a row that is done, `obs` is the first observation of the next episode.

    SB3's environments reset themselves within the step. If `obs` is the last observation of the
    old episode instead, the policy's next action answers an observation of an episode that is
    over. Typical mistake: the row is reset at the next step, as in Gymnasium's NEXT_STEP mode.
    """
    yield from firsts_like_singles(record, "the first of the next episode")


autoreset_like_reset = error(
    after=(
        *ENDINGS,
        "step_obs_in_space",
        "terminal_observation_in_space",
        "obs_after_done_is_reset_obs",
        "seed_used_once",
        "rows_independent",
        "no_phantom_transition",
    )
)(first_observations.autoreset_like_reset)


@error(
    after=(*COMPARED, "terminal_observation_in_space", "terminal_observation_not_reset_obs"),
    without_reference=all_of(lasts_moved_on, last_as_in_first_episode),
)
def terminal_observation_is_last(record: Record) -> Iterator[Demand]:
    """`terminal_observation` is the observation that the last step of the episode led to.

    Typical mistakes: the observation before the last action, the observation of another row, zeros,
    or an observation without the processing that `obs` has been through.
    """
    yield from lasts_like_singles(record)


@error(
    after=(
        *ENDINGS,
        "terminal_observation_in_space",
        "terminal_observation_is_last",
        "obs_after_done_is_reset_obs",
    )
)
def terminal_observation_like_others(record: Record) -> Iterator[Demand]:
    """`terminal_observation` is computed like the observations of all other steps.

    The last observations of several episodes are held against what other steps do. Typical
    mistakes: an observation without the processing that `obs` has been through, or without the last
    frame of a stack; an image that is reshaped instead of transposed; zeros; the observation before
    the last action; the first one of the next episode.
    """
    yield from last_like_steps(record)


last_reward_like_others = error(
    after=(*ENDINGS, "rewards_shape", "episode_statistics_of_the_episode")
)(last_rewards.last_reward_like_others)
