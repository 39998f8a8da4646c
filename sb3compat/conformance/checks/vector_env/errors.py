"""A `step` that must raise, and the results after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.scenes import RESULTS
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, SYNC, marked
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Call
from sb3compat.conformance.rows import obs_of
from sb3compat.conformance.scene import Recorded, Scene
from sb3compat.conformance.values import Several, Value

equal = PRELUDE["equal"]

# Results that are late once are late in so many steps.
_FOLLOWED = 3

error, warning = marked(group="step", source=SYNC)


@warning()
def wrong_action_count_rejected(scene: Scene) -> Iterator[Demand]:
    """`step` with another number of actions than rows raises.

    Actions that are broadcast, or cut off, train without an error. Check the length before
    anything is stepped.
    """
    env, _ = scene.start()
    error = scene.caught(env.step, _wrong_count(scene)).error
    yield expect("{0} is not None", error, should=f"an exception: not {scene.n} actions")


def _wrong_count(scene: Scene) -> Any:
    action = scene.subject.actions[0]
    if isinstance(action, dict | tuple):
        raise NotExercisedError("actions are no arrays")
    # One alone might be broadcast.
    counts = dict.fromkeys((scene.n - 1, scene.n + 1, 1))
    return np.stack([action] * scene.choose([k for k in counts if k not in (0, scene.n)]))


@error(needs=("seeding", "repeatable"), after=DETERMINISTIC)
def no_stale_result_after_error(scene: Scene) -> Iterator[Demand]:
    """After a `step` that raised, the next call returns its own result.

    If actions were sent to workers before the error, the answers are still in the pipes, and the
    next step returns them: from then on every result is one step late, without an error. Check
    actions before any is sent, or collect the answers. `AsyncVectorEnv` does neither, up to
    Gymnasium 1.4. With shared memory, observations may be in time while rewards and flags are
    late.
    """
    seed, rejected, right = _two_actions(scene)
    env, twin, third = scene.make(), scene.make("twin"), scene.make("third")
    env.restart(seed)
    if scene.caught(env.step, np.stack([rejected] * (scene.n + 1))).failure is None:
        raise NotExercisedError("the step takes any number of actions")
    # The results that the rejected actions would have had, without the one too many.
    first, actions = np.stack([rejected] * scene.n), np.stack([right] * scene.n)
    most = 2 * scene.subject.endings[0].steps + 4 if scene.subject.endings else _FOLLOWED
    twin.restart(seed)
    third.restart(seed)
    late = _Played(twin, [twin.go_on(each) for each in (first, *[actions] * most)])
    fresh = _Played(third, [third.go_on(actions) for _ in range(most)])
    whole, flags = _telling(late, fresh, RESULTS, 1), _telling(late, fresh, _FLAGS, most)
    if whole is None and flags is None:
        raise NotExercisedError("no row can tell a batch that is too long from one that is not")
    step = scene.caught(env.step, actions)
    scene.judged = step.failure is not None
    if scene.judged:
        return
    _no_end_in(scene, [step])
    steps, i = flags or (0, 0)
    later = [env.go_on(actions) for _ in range(max(steps, _FOLLOWED) - 1)]
    seen = _Played(env, [step, *later])
    if whole is not None and _all_late(seen, late, RESULTS, _FOLLOWED):
        yield _own(seen, late, fresh, RESULTS, *whole)
    # Observations in shared memory may be in time, while the results in the pipe are late.
    known = all(_known_place(seen, late, fresh, k, i) for k in range(steps))
    if steps and known and _all_late(seen, late, _FLAGS, steps):
        yield _own(seen, late, fresh, _FLAGS, steps, i)
    _no_end_in(scene, later)
    scene.judged = True


def _no_end_in(scene: Scene, steps: Sequence[Call]) -> None:
    """Without autoreset, a late environment is told to reset rows in other steps than its twin."""
    if scene.disabled and any(step.ended for step in steps):
        raise NotExercisedError("an episode ends too soon after the error")


@dataclass(frozen=True)
class _Played:
    """An instance, and steps of it from a seed on."""

    env: Recorded
    steps: list[Call]

    def row(self, k: int, i: int, names: Sequence[str]) -> list[Value]:
        """What a row gets in a step."""
        step = self.steps[k]
        return [
            obs_of(self.env.record, step, i) if name == "obs" else getattr(step, name)[i]
            for name in names
        ]

    def of_row(self, k: int, i: int, names: Sequence[str]) -> list[Any]:
        """The same as plain values."""
        return [value.value for value in self.row(k, i, names)]


def _two_actions(scene: Scene) -> tuple[int, Any, Any]:
    """A seed, the action of the step to be rejected, and another one."""
    known = scene.subject.actions
    if len(known) < 2 or isinstance(known[0], dict | tuple):
        raise NotExercisedError("there is one action only, or actions are no arrays")
    rejected, right = scene.choose(known[:2]), known[1]
    if equal(rejected, right):
        rejected, right = right, known[0]
    return scene.seed(), rejected, right


def _own(
    seen: _Played, late: _Played, fresh: _Played, names: Sequence[str], steps: int, i: int
) -> Demand:
    """Row i does not get the results of the rejected step and of those after it."""
    n, whole = len(names), "obs" in names
    got, rejected = (
        [Several(parts) if steps > 1 else parts[0] for parts in zip(*rows, strict=True)]
        for rows in ([played.row(k, i, names) for k in range(steps)] for played in (seen, late))
    )
    own = fresh.of_row(steps - 1, i, names)
    places = [f"{{{k}}}" for k in range(3 * n)]
    return expect(
        f"not equal([{', '.join(places[n : 2 * n])}], [{', '.join(places[2 * n :])}])",
        *seen.row(steps - 1, i, names),
        *got,
        *rejected,
        what="{0}" if whole else f"[{', '.join(places[:n])}]",
        should=short(own[0] if whole else own) + _NOT_LATE,
        row=i,
    )


def _all_late(seen: _Played, late: _Played, names: Sequence[str], steps: int) -> bool:
    """Whether all rows get the results of the rejected step, and on.

    One row in one step may do so by chance: a step that raised half-way may have drawn random
    numbers.
    """
    return all(
        equal(seen.of_row(k, i, names), late.of_row(k, i, names))
        for k in range(steps)
        for i in seen.env.record.rows
    )


def _known_place(seen: _Played, late: _Played, fresh: _Played, k: int, i: int) -> bool:
    """Whether a row observes what it would if the rejected step had been taken, or had not.

    A step that raised half-way may leave it at another place, whose rewards tell nothing.
    """
    places = ((late, k), (late, k + 1), (fresh, k))
    got = seen.of_row(k, i, ["obs"])
    return any(equal(got, played.of_row(step, i, ["obs"])) for played, step in places)


_NOT_LATE = ", or else anything but the results of the rejected step and on, each one step late"
_FLAGS = RESULTS[1:]


def _telling(
    late: _Played, fresh: _Played, names: Sequence[str], most: int
) -> tuple[int, int] | None:
    """The number of steps, and the row, in which late results differ from all others.

    A row that was stepped before the error goes on from there, another row goes on as if there had
    been no such step. A row that ended in that step might do either, and more.

    Args:
        late: The rejected step, and those after it.
        fresh: The steps after it alone.
        names: Which results to look at.
        most: The number of steps to look at.
    """
    found = []
    for i in late.env.record.running(late.steps[0]):
        both_differs = fresh_differs = False
        for k in range(most):
            mine = late.of_row(k, i, names)
            both_differs |= not equal(mine, late.of_row(k + 1, i, names))
            fresh_differs |= not equal(mine, fresh.of_row(k, i, names))
            if both_differs and fresh_differs:
                found.append((k + 1, i))
                break
    return min(found, default=None)
