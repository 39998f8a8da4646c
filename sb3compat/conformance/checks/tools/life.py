"""The end of an environment, and what it leaves behind: what it wraps, processes, memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sb3compat.conformance.checks.tools.comparing import same
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call, Given
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.subject.actions import batch

equal = PRELUDE["equal"]
# The seconds within which processes must have ended after `close`.
_PATIENCE = 3
# Episodes of a row before its memory is measured, as statistics keep the last hundred, and in each
# measurement; and the time for all their steps, which take longer while memory is traced.
_WARM, _MEASURED, _MOST_SECONDS, _SLOWER = 110, 30, 8.0, 4
# An end leaves so many bytes where nothing but a return and a length is kept.
_MOST_BYTES = 400


def close_returns(scene: Scene) -> Iterator[Demand]:
    """`close()` returns, in the middle of an episode too, and leaves other instances alone.

    Otherwise a script that has done its work never ends, or one that closes the environment of its
    evaluation cannot go on. Typical mistakes: `close` joins worker processes that wait for a
    command, or waits for a step that nobody has asked for; it shuts down or empties what all
    instances use.
    """
    env = scene.make()
    scene.caught(env.reset)
    others = [scene.make("other")] if scene.choose((False, True)) else []
    others = [
        each
        for each in others
        if all(call.failure is None and call.complete for call in _begun(each))
    ]
    before = [_repeated(each) for each in others]
    error = env.within(2 + round(10 * scene.subject.make_seconds), env.close).error
    if isinstance(error.value, str):
        scene.forget(env)  # it would hang once more
    yield expect("not isinstance({0}, str)", error, should="no hang: `close` returns")
    for other, calls in zip(others, before, strict=True):
        for call in _begun(other):
            should = "None: another instance was closed, not this one"
            yield expect("{0} is None", call.error, should=should)
        for one, again in zip(calls, _under_a_seed(other), strict=False):
            yield same(again.obs, one.obs, "as before another instance was closed, under one seed")


def _begun(env: Recorded) -> list[Call]:
    """A reset and a step, both of which may raise."""
    return [env.scene.caught(env.reset), env.scene.caught(env.step, _actions(env))]


def _under_a_seed(env: Recorded) -> Iterator[Call]:
    """A reset under a seed, and a step."""
    yield env.restart(0)
    yield env.step(_actions(env))


def _repeated(env: Recorded) -> list[Call]:
    """The calls under a seed; none where they do not return the same when they are made again."""
    if env.scene.subject.missing(("seeding", "repeatable")):
        return []
    first, second = list(_under_a_seed(env)), list(_under_a_seed(env))
    alike = (equal(a.obs.value, b.obs.value) for a, b in zip(first, second, strict=True))
    return second if all(alike) else []


def _actions(env: Recorded) -> Any:
    return batch(env.scene.subject, [env.scene.subject.actions[0]] * env.scene.n)


def nothing_left_after_close(scene: Scene) -> Iterator[Demand]:
    """After `close()` no process, thread or shared memory of the environment is left.

    A search over hyperparameters makes hundreds of environments in one process. Typical mistakes:
    workers are told to end, but never joined; shared memory is closed, but not unlinked; a thread
    waits for work for ever.
    """
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
    left = scene.made_by("left_over", "left", held, _PATIENCE)
    yield expect("not {0}", left.value, should="nothing, as the environment is closed")


def close_closes_what_it_wraps(scene: Scene) -> Iterator[Demand]:
    """`close()` closes the environment that a wrapper wraps, and the environments of the rows.

    Those of the rows are watched where they are in a list or tuple, and have a `close` of their
    own. Typical mistake: a `close` or `close_extras` of one's own, without `super()`. The
    processes, files and windows below it stay open then.
    """
    env = scene.make()
    left = scene.made_by("open_below", "left", env)
    if not left.live:
        raise NotExercisedError("it wraps nothing that has to be closed")
    env.close()
    yield expect("not {0}", left.value, should="empty: `close` closes what is below")


def memory_does_not_grow(scene: Scene) -> Iterator[Demand]:
    """The ends of episodes leave no memory behind, but for a few numbers.

    A training has millions of them. Typical mistake: a list of infos or last observations that
    nothing empties. The memory that Python has handed out is measured over a few hundred
    episodes, where episodes are short enough for that. A deque with a `maxlen` that is not full yet
    is left alone.
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
