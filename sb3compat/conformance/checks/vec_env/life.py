"""Closing, exceptions in sub-environments, and what is left behind."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools.life import no_growth, nothing_left, wrapped_closed
from sb3compat.conformance.checks.tools.scenes import close_returning
from sb3compat.conformance.checks.vec_env.marks import error, warning
from sb3compat.conformance.contract import BASICS, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.actions import batch

_AFTER_ERRORS = (*BASICS["vec_env"], "wrong_action_count_rejected", "close_returns")


@error(group="life", source=SB3_SOURCE, after=())
def close_returns(scene: Scene) -> Iterator[Demand]:
    """`close()` returns, in the middle of an episode too, and leaves other instances alone.

    Otherwise a script that has done its work never ends, or one that closes the environment of its
    evaluation cannot go on. Typical mistakes: `close` joins worker processes that wait for a
    command, or waits for a step that nobody has asked for; it shuts down what all instances use.
    """
    yield from close_returning(scene)


@warning(group="life", source=SB3_SOURCE, after=("close_returns",))
def close_idempotent(scene: Scene) -> Iterator[Demand]:
    """`close()` may be called twice.

    Wrappers, evaluations and `finally` clauses close environments that are closed already.
    """
    env = scene.make()
    if scene.choose((False, True)):
        scene.caught(env.reset)
    env.close()
    error = scene.caught(env.close).error
    yield expect("{0} is None", error, should="None, as it is closed already")


@error(group="life", source=SB3_SOURCE, after=("close_returns",))
def close_closes_what_it_wraps(scene: Scene) -> Iterator[Demand]:
    """`close()` closes the environment that a wrapper wraps, and the environments of the rows.

    Those of the rows are watched where they are in a list or tuple, and have a `close` of their
    own. Typical mistake: a `close` or `close_extras` of one's own, without `super()`. The
    processes, files and windows below it stay open then.
    """
    yield from wrapped_closed(scene)


@warning(group="life", source=SB3_SOURCE, after=_AFTER_ERRORS)
def close_after_error(scene: Scene) -> Iterator[Demand]:
    """`close()` works after a failed call, and returns.

    Otherwise the second error hides the first, or processes stay behind.
    """
    env, _ = scene.start()
    few = batch(scene.subject, [scene.subject.actions[0]] * scene.n)[:0]
    scene.caught(env.step, few)
    scene.caught(env.get_attr, "no_such_attribute")
    error = scene.caught(env.close).error
    yield expect("{0} is None", error, should="None, also after an error")


@warning(group="life", source=SB3_SOURCE, needs=("sub_envs",), after=())
def worker_exception_keeps_type(scene: Scene) -> Iterator[Demand]:
    """An exception in a sub-environment arrives with its own type.

    Typical mistake: it ends the worker process, and the caller gets an EOFError or a broken pipe
    without the reason. Catch it in the worker, send it over, and raise it in the caller.
    """
    env = scene.make()
    error = scene.caught(env.env_method, "reset", no_such_argument=1).error
    if error.value is None:
        raise NotExercisedError("the method takes any argument")
    yield expect(
        "not isinstance({0}, (EOFError, OSError))",
        error,
        should="the TypeError that the unknown argument leads to",
    )


@error(group="life", source=SB3_SOURCE, after=(*BASICS["vec_env"], "close_idempotent"), new=True)
def nothing_left_after_close(scene: Scene) -> Iterator[Demand]:
    """After `close()` no process, thread or shared memory of the environment is left.

    A search over hyperparameters makes hundreds of environments in one process. Typical mistakes:
    workers are told to end, but never joined; shared memory is closed, but not unlinked; a thread
    waits for work for ever.
    """
    yield from nothing_left(scene)


@warning(group="life", source=SB3_SOURCE, after=(*BASICS["vec_env"], "dones_shape"))
def memory_does_not_grow(scene: Scene) -> Iterator[Demand]:
    """The ends of episodes leave no memory behind, but for a few numbers.

    A training has millions of them. Typical mistake: a list of infos or last observations that
    nothing empties. The memory that Python has handed out is measured over a few hundred
    episodes, where episodes are short enough for that. A deque with a `maxlen` that is not full yet
    is left alone.
    """
    yield from no_growth(scene)
