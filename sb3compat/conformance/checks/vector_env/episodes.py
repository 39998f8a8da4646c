"""Ends of episodes in a VectorEnv, whatever its autoreset mode."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.evidence import last_like_steps, like_reset
from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import start_at
from sb3compat.conformance.checks.vector_env.marks import error
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.play import Play
from sb3compat.conformance.record import Record


@error(group="episode end", source=GYM_AUTORESET)
def autoreset_mode_matches_behaviour(play: Play) -> None:
    """Episodes end as `metadata["autoreset_mode"]` says.

    Training code takes the observation of an ending step for the last one or for the next first
    one by what is declared, and bootstraps wrongly if that is not so. The declaration is often
    copied from another environment, or kept when the behaviour changed.
    """
    ending = play.ending()
    if ending.seed is None:
        play.start()
    else:
        start_at(play, ending)
    rewards = []
    for _ in range(3 * ending.steps + 20):
        play.run(f"actions = {ending.actions}")
        play.go_on("actions")
        rewards.append(play.value("deepcopy(rewards)"))
        if play.ended():
            break
    rows = play.ended()
    if not rows:
        raise NotExercisedError("no episode ended")
    mode = play.subject.mode
    has_final = play.value("'final_obs' in infos or 'final_observation' in infos")
    for i in rows if has_final and mode != "SameStep" else []:
        play.run("final = infos.get('final_obs', infos.get('final_observation'))")
        got = at(play, "obs", i)
        play.demand(
            f"close({got}, row(final, {i}))",
            got,
            f"the last observation {short(play.value(f'row(final, {i})'))} in {mode} mode",
            i,
        )
    if mode == "Disabled":
        return
    play.run("error = caught(lambda: globals().update(later=env.step(actions)))")
    play.demand("error is None", "error", f"None: in {mode} mode ended rows are reset")
    if mode == "NextStep":
        return
    for i in rows:
        if has_final or not all(reward[i] for reward in rewards):
            return
        play.demand(
            f"later[1][{i}] != 0",
            f"later[1][{i}]",
            "other than 0, as every reward before: in SameStep mode this is an ordinary step",
            i,
        )


@error(
    group="episode end",
    source=GYM_AUTORESET,
    after=(
        *BASICS["vector_env"],
        "autoreset_mode_matches_behaviour",
        "obs_in_batched_space",
        "obs_is_reset_obs",
        "one_reset_per_episode",
        "seed_used_once",
    ),
)
def autoreset_like_reset(record: Record) -> Iterator[Demand]:
    """Episodes begin after an end as they do after `reset()`.

    What each reset sets back to the same value, such as a step counter within the observation, has
    that value there, too; and what each reset draws is drawn. Typical mistakes: the reset of a row
    sets back a part of the state only, or hands out zeros. In DISABLED mode this is about the
    masked resets that the caller asks for.
    """
    yield from like_reset(record)


@error(
    group="episode end",
    source=GYM_AUTORESET,
    after=(
        *BASICS["vector_env"],
        "autoreset_mode_matches_behaviour",
        "obs_in_batched_space",
        "final_obs_in_space",
        "final_obs_is_last",
        "obs_is_reset_obs",
        "done_step_returns_final_obs",
        "no_reset_unasked",
    ),
)
def last_obs_like_others(record: Record) -> Iterator[Demand]:
    """The last observation of an episode comes about as the observations of all other steps do.

    The last observations of several episodes are held against what other steps do. Typical
    mistakes: an observation without the processing that others have been through, or without the
    last frame of a stack; zeros; the observation before the last action; the first one of the next
    episode.
    """
    yield from last_like_steps(record)
