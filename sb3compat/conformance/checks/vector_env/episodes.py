"""Ends of episodes in a VectorEnv, whatever its autoreset mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sb3compat.conformance.checks.tools import first_observations, last_rewards
from sb3compat.conformance.checks.tools.last_observations import last_like_steps
from sb3compat.conformance.checks.tools.limits import terminal_states_at_the_limit
from sb3compat.conformance.checks.vector_env.marks import EPISODES, marked
from sb3compat.conformance.contract import GYM_AUTORESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Call, Record
from sb3compat.conformance.rows import obs_of
from sb3compat.conformance.scene import Scene

# What must hold before the last observations of episodes tell anything.
_FINAL_OBS = (
    *EPISODES,
    "obs_in_batched_space",
    "final_obs_in_space",
    "final_obs_is_last",
    "done_step_returns_final_obs",
)

error, _ = marked(group="episode end", source=GYM_AUTORESET)


@error()
def autoreset_mode_matches_behaviour(scene: Scene) -> Iterator[Demand]:
    """Episodes end as `metadata["autoreset_mode"]` says.

    Training code takes the observation of an ending step for the last one or for the next first
    one by what is declared, and bootstraps wrongly if that is not so. The declaration is often
    copied from another environment, or kept when the behaviour changed.
    """
    ending = scene.ending()
    env = scene.make()
    act = env.acting(ending)
    # Without a seed of its own the way to the end may be another one.
    seeding = scene.subject.capabilities.get("seeding")
    env.restart(scene.seed() if ending.seed is None and seeding else ending.seed)
    steps: list[Call] = []
    while not (steps and steps[-1].ended) and len(steps) < 3 * ending.steps + 20:
        actions = act()
        steps.append(env.go_on(actions))
    last = steps[-1]
    if not last.ended:
        raise NotExercisedError("no episode ended")
    scene.judged = True
    mode = scene.subject.mode
    finals = [key for key in ("final_obs", "final_observation") if key in last.infos.value]
    for i in last.ended if finals and mode != "SameStep" else []:
        final = last.infos[finals[0]].row(i)
        should = f"the last observation {short(final.value)} in {mode} mode"
        got = obs_of(env.record, last, i)
        yield expect("close({0}, {1})", got, final, should=should, row=i)
    if mode == "Disabled":
        return
    later = scene.caught(env.step, actions)
    yield expect("{0} is None", later.error, should=f"None: in {mode} mode ended rows are reset")
    if mode == "NextStep":
        return
    # What a wrong shape says is told by the check of it.
    told = all(np.shape(step.rewards.value) == (scene.n,) for step in steps)
    for i in last.ended:
        if finals or not told or not all(step.rewards[i].value for step in steps):
            return
        should = "other than 0, as every reward before: in SameStep mode this is an ordinary step"
        yield expect("{0} != 0", later.rewards[i], should=should, row=i)


autoreset_like_reset = error(
    after=(
        *EPISODES,
        "obs_in_batched_space",
        "obs_is_reset_obs",
        "one_reset_per_episode",
        "seed_used_once",
    )
)(first_observations.autoreset_like_reset)


@error(after=(*_FINAL_OBS, "obs_is_reset_obs", "no_reset_unasked"))
def last_obs_like_others(record: Record) -> Iterator[Demand]:
    """The last observation of an episode is computed like the observations of all other steps.

    The last observations of several episodes are held against what other steps do. Typical
    mistakes: an observation without the processing that others have been through, or without the
    last frame of a stack; an image that is reshaped instead of transposed; zeros; the observation
    before the last action; the first one of the next episode.
    """
    yield from last_like_steps(record)


last_reward_like_others = error(
    after=(*EPISODES, "rewards_shape", "episode_statistics_of_the_episode")
)(last_rewards.last_reward_like_others)


@error(after=(*_FINAL_OBS, "last_obs_like_others"))
def terminal_states_terminate(record: Record) -> Iterator[Demand]:
    """`terminations` is true in a terminal state, also in the last step of a time limit.

    Both flags may be true. If only `truncations` is, algorithms add the value of a state after
    which nothing comes. The observations of many episodes show which states are terminal, if there
    are few of them. Typical mistake: `terminations &= ~truncations`.
    """
    yield from terminal_states_at_the_limit(record)
