"""What an environment leaves behind: processes after `close`, memory after episodes."""

from __future__ import annotations

from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.subject.actions import batch_source, sample_seed_source

# The seconds within which processes must have ended after `close`.
_PATIENCE = 3
# Episodes of a row before its memory is measured, as statistics keep the last hundred, and in each
# measurement; and the time for all their steps, which take longer while memory is traced.
_WARM, _MEASURED, _MOST_SECONDS, _SLOWER = 110, 30, 8.0, 4
# An end leaves so many bytes where nothing but a return and a length is kept.
_MOST_BYTES = 400


def demand_nothing_left(play: Play) -> None:
    """Demand that no process, thread or shared memory of an instance is left after `close`."""
    seed = 0 if play.subject.capabilities.get("seeding") else None
    actions = batch_source(play.family, [play.subject.actions[0]] * play.n)
    # What is made once for all instances is made by the first one.
    play.run("first = make_env()")
    play.run("first.reset()")
    play.run("first.close()")
    play.run("before = belongings()")
    play.make()
    play.reset(seed)
    play.step(actions)
    play.run("held = belongings() - before")
    play.run("env.close()")
    play.demand(
        f"not left_over(held, {_PATIENCE})",
        "left_over(held, 0)",
        "nothing, as the environment is closed",
    )


def demand_no_growth(play: Play) -> None:
    """Demand that the ends of episodes leave next to no memory behind.

    Raises:
        NotExercisedError: If that takes too long, or the rows are in other processes.
    """
    subject = play.subject
    if not subject.endings or isinstance(subject.actions[0], dict | tuple):
        raise NotExercisedError("no episode ended, or actions are no arrays")
    if subject.workers:
        raise NotExercisedError("the rows are in processes of their own")
    ending = subject.endings[0]
    warm, measured = (episodes * (ending.steps + 2) for episodes in (_WARM, _MEASURED))
    if (warm + 3 * measured) * subject.step_seconds * _SLOWER > _MOST_SECONDS:
        raise NotExercisedError("so many episodes would take too long")
    play.make()
    play.run(ending.setup or sample_seed_source(subject, 0))
    play.reset(ending.seed)
    disabled = subject.mode == "Disabled"
    act = f"lambda: {ending.actions}"
    play.run(f"grown = growth(env, {act}, {warm}, {measured}, disabled={disabled})")
    play.demand(
        f"min(grown) < {_MOST_BYTES}",
        "grown",
        f"less than {_MOST_BYTES} bytes for each end of an episode, in one run of three",
    )
