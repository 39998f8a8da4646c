"""A `step` that must raise, and the results after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.vector_env.marks import (
    DETERMINISTIC,
    SYNC,
    error,
    warning,
)
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.program.script import to_source


@warning(group="step", source=SYNC)
def wrong_action_count_rejected(play: Play) -> None:
    """`step` with another number of actions than rows raises.

    Actions that are broadcast, or cut off, train without an error. Check the length before
    anything is stepped.
    """
    play.start()
    play.run(f"error = caught(lambda: env.step({_wrong_count(play)}))")
    play.demand("error is not None", "error", f"an exception: not {play.n} actions")


def _wrong_count(play: Play) -> str:
    action = play.subject.actions[0]
    if isinstance(action, dict | tuple):
        raise NotExercisedError("actions are no arrays")
    more = play.draw(st.booleans()) or play.n == 1
    return to_source(np.stack([action] * (play.n + 1 if more else play.n - 1)))


@error(
    group="step",
    source=SYNC,
    needs=("seeding", "repeatable"),
    after=(*DETERMINISTIC, "autoreset_mode_matches_behaviour"),
)
def no_stale_result_after_error(play: Play) -> None:
    """After a `step` that raised, the next call returns its own result.

    If actions were sent to workers before the error, the answers are still in the pipes, and the
    next step returns them: from then on every result is one step late, without an error. Check
    actions before any is sent, or collect the answers. `AsyncVectorEnv` does neither, up to
    Gymnasium 1.4. With shared memory, observations may be in time while rewards and flags are
    late.
    """
    seed, rejected, right = _rejected_step(play)
    # The results that the rejected actions would have had, without the one too many.
    play.run(f"actions = {to_source(np.stack([right] * play.n))}")
    play.run(f"rejected = {to_source(np.stack([rejected] * play.n))}")
    most = 2 * play.subject.endings[0].steps + 4 if play.subject.endings else 1
    for name, first in (("twin", "[rejected] + "), ("third", "")):
        play.run(f"{name}.reset(seed={seed})")
        batches = f"{first}[actions] * {most}"
        play.run(f"by_{name} = record({name}, {batches}, disabled={_disabled(play)})")
    whole, flags = _telling(play, range(4), 1), _telling(play, range(1, 4), most)
    if whole is None and flags is None:
        raise NotExercisedError("no row can tell a batch that is too long from one that is not")
    play.run("results = []")
    play.run("error = caught(lambda: results.extend(env.step(actions)))")
    if play.value("error") is not None:
        return
    if whole is not None:
        _demand_own_result(play, whole[1])
    if flags is None or (_disabled(play) and play.value("ended(*results[2:4]).any()")):
        return
    # Observations in shared memory may be in time, while the results in the pipe are late.
    _demand_own_flags(play, *flags)


def _disabled(play: Play) -> bool:
    return play.subject.mode == "Disabled"


def _rejected_step(play: Play) -> tuple[int, Any, Any]:
    """Make three instances, reset the first, and step it with an action too many.

    Returns:
        The seed of the reset, the action of the rejected step, and another one.

    Raises:
        NotExercisedError: If there are no two actions, or the step does not raise.
    """
    known = play.subject.actions
    if len(known) < 2 or isinstance(known[0], dict | tuple):
        raise NotExercisedError("there is one action only, or actions are no arrays")
    rejected, right = known[play.draw(st.integers(0, 1))], known[1]
    if play.value("equal")(rejected, right):
        rejected, right = right, known[0]
    seed = play.draw_seed()
    play.run("env, twin, third = make_env(), make_env(), make_env()")
    for line in opening(play.family, "", seed):
        play.run(line)
    wrong = to_source(np.stack([rejected] * (play.n + 1)))
    play.run(f"error = caught(lambda: env.step({wrong}))")
    if play.value("error") is None:
        raise NotExercisedError("the step takes any number of actions")
    return seed, rejected, right


def _demand_own_result(play: Play, i: int) -> None:
    """Demand that row i does not have the whole result of the rejected step."""
    got, late = (_of_row(play, name, range(4), i) for name in ("results", "by_twin[0]"))
    own = short(play.value(at(play, "by_third[0][0]", i)))
    play.demand(f"not equal({got}, {late})", at(play, "results[0]", i), own + _NOT_LATE, i)


def _demand_own_flags(play: Play, steps: int, i: int) -> None:
    """Demand that the rewards and flags of row i are not one step late, for so many steps."""
    disabled = _disabled(play)
    play.run(f"seen = [results[:4], *record(env, [actions] * {steps - 1}, disabled={disabled})]")
    play.script.steps += steps - 1
    got, late = (
        f"[{_of_row(play, 'step', range(1, 4), i)} for step in {name}]"
        for name in ("seen", f"by_twin[:{steps}]")
    )
    if not all(_known_place(play, k, i) for k in range(steps)):
        return
    last = _of_row(play, "seen[-1]", range(1, 4), i)
    own = short(play.value(_of_row(play, f"by_third[{steps - 1}]", range(1, 4), i)))
    play.demand(f"not equal({got}, {late})", last, own + _NOT_LATE, i)


def _known_place(play: Play, k: int, i: int) -> bool:
    """Whether a row observes what it would if the rejected step had been taken, or had not.

    A step that raised half-way may leave it at another place, whose rewards tell nothing.
    """
    got, *others = (
        play.value(at(play, f"{result}[0]", i))
        for result in (f"seen[{k}]", f"by_twin[{k}]", f"by_twin[{k + 1}]", f"by_third[{k}]")
    )
    return any(map(play.value("equal"), [got] * 3, others))


_NOT_LATE = ", or else anything but the results of the rejected step and on, each one step late"


def _of_row(play: Play, result: str, parts: range, i: int) -> str:
    """Source for the row's share of these parts of a result, as a list."""
    of_row = (at(play, f"{result}[0]", i) if k == 0 else f"{result}[{k}][{i}]" for k in parts)
    return f"[{', '.join(of_row)}]"


def _telling(play: Play, parts: range, most: int) -> tuple[int, int] | None:
    """The number of steps, and the row, in which late results differ from all others.

    A row that was stepped before the error goes on from there, another row goes on as if there had
    been no such step. A row that ended in that step might do either, and more.

    Args:
        play: The run of the check.
        parts: Which of the four results to look at.
        most: The number of steps to look at.
    """
    equal = play.value("equal")
    found = []
    for i in np.flatnonzero(~play.value("ended(*by_twin[0][2:4])")).tolist():
        row = _of_row(play, "step", parts, i)
        late, both, fresh = (
            play.value(f"[{row} for step in {name}]")
            for name in ("by_twin", "by_twin[1:]", "by_third")
        )
        for steps in range(1, most + 1):
            if not any(equal(late[:steps], other[:steps]) for other in (both, fresh)):
                found.append((steps, i))
                break
    return min(found, default=None)
