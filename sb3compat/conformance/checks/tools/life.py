"""What an environment leaves behind: what it wraps, processes, memory."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Given
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.actions import batch

# The seconds within which processes must have ended after `close`.
_PATIENCE = 3
# Episodes of a row before its memory is measured, as statistics keep the last hundred, and in each
# measurement; and the time for all their steps, which take longer while memory is traced.
_WARM, _MEASURED, _MOST_SECONDS, _SLOWER = 110, 30, 8.0, 4
# An end leaves so many bytes where nothing but a return and a length is kept.
_MOST_BYTES = 400


def nothing_left(scene: Scene) -> Iterator[Demand]:
    """No process, thread or shared memory of an instance is left after `close`."""
    # What is made once for all instances is made by the first one.
    first = scene.make("first")
    first.reset()
    first.close()
    before = scene.made_by("belongings", "before")
    env = scene.make()
    env.restart(0 if scene.subject.capabilities.get("seeding") else None)
    env.step(batch(scene.subject, [scene.subject.actions[0]] * scene.n))
    held = scene.made_by("belongings", "held", before)
    env.close()
    yield expect(
        f"not left_over({{0}}, {_PATIENCE})",
        held.value,
        what="left_over({0}, 0)",
        should="nothing, as the environment is closed",
    )


def wrapped_closed(scene: Scene) -> Iterator[Demand]:
    """`close` closes what an environment wraps, and the environments of its rows.

    Raises:
        NotExercisedError: If there is nothing below it that closes anything.
    """
    env = scene.make()
    left = scene.made_by("open_below", "left", env)
    if not left.live:
        raise NotExercisedError("it wraps nothing that has to be closed")
    env.close()
    yield expect("not {0}", left.value, should="empty: `close` closes what is below")


def no_growth(scene: Scene) -> Iterator[Demand]:
    """The ends of episodes leave next to no memory behind.

    Raises:
        NotExercisedError: If that takes too long, or the rows are in other processes.
    """
    subject = scene.subject
    if not subject.endings or isinstance(subject.actions[0], dict | tuple):
        raise NotExercisedError("no episode ended, or actions are no arrays")
    if subject.workers:
        raise NotExercisedError("the rows are in processes of their own")
    ending = subject.endings[0]
    warm, measured = (episodes * (ending.steps + 2) for episodes in (_WARM, _MEASURED))
    if (warm + 3 * measured) * subject.step_seconds * _SLOWER > _MOST_SECONDS:
        raise NotExercisedError("so many episodes would take too long")
    env = scene.make()
    act = Given(f"lambda: {ending.actions}", env.acting(ending))
    # The actions may be samples of either.
    env.action_space.seed(0)
    if scene.family == "vector_env":
        env.single_action_space.seed(0)
    env.restart(ending.seed)
    grown = scene.made_by("growth", "grown", env, act, warm, measured, disabled=scene.disabled)
    yield expect(
        f"min({{0}}) < {_MOST_BYTES}",
        grown.value,
        should=f"less than {_MOST_BYTES} bytes for each end of an episode, in one run of three",
    )
