"""Closing, exceptions in sub-environments, and what is left behind."""

from __future__ import annotations

from collections.abc import Iterator

from sb3compat.conformance.checks.tools import life
from sb3compat.conformance.checks.vec_env.marks import marked
from sb3compat.conformance.contract import BASICS, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.actions import batch

_AFTER_ERRORS = (*BASICS["vec_env"], "wrong_action_count_rejected", "close_returns")

error, warning = marked(group="life", source=SB3_SOURCE)


close_returns = error(after=())(life.close_returns)


@warning(after=("close_returns",))
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


close_closes_what_it_wraps = error(after=("close_returns",))(life.close_closes_what_it_wraps)


@warning(after=_AFTER_ERRORS)
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


@warning(needs=("sub_envs",), after=())
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


nothing_left_after_close = error(after=(*BASICS["vec_env"], "close_idempotent"), new=True)(
    life.nothing_left_after_close
)


memory_does_not_grow = warning(after=(*BASICS["vec_env"], "dones_shape"))(life.memory_does_not_grow)
