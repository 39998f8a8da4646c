"""Resets of some rows, `reset(options={"reset_mask": mask})`, in every mode that has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sb3compat.conformance.checks.tools.scenes import row_alike, seeded_start, step_both
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, EPISODES, SYNC, marked
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand, expect
from sb3compat.conformance.record import Drawn
from sb3compat.conformance.rows import obs_of
from sb3compat.conformance.scene import Scene

NEEDS = ("masked_reset",)
APART = (*NEEDS, "separate_rows")
_NO_OPTIONS = (
    "partly checked: pass the options that its reset looks for to check fully, --reset-options "
    "'{…}', in Python options={…}"
)

error, warning = marked(group="masked reset", source=SYNC)


@error(needs=APART, after=EPISODES)
def masked_reset_leaves_others(scene: Scene) -> Iterator[Demand]:
    """A masked reset does not change the state of the rows outside the mask.

    Their observations are those of the last step, and their episodes go on. An environment that
    ignores the mask resets all rows, and running episodes end without a flag. Read
    `options["reset_mask"]`.
    """
    if scene.n < 2:
        raise NotExercisedError("there is one row")
    env, before = scene.start()
    for _ in range(scene.choose(range(5))):
        before = env.go_on(scene.actions())
    masked = {scene.choose(scene.rows), *env.due}
    after = env.reset_rows(sorted(masked))
    for j in sorted(set(scene.rows) - masked):
        got, was = obs_of(env.record, after, j), obs_of(env.record, before, j)
        should = f"{short(was.value)}, as before the reset of other rows"
        yield expect("equal({0}, {1})", got, was, should=should, row=j)


@error(
    needs=(*APART, "own_generators"), after=(*DETERMINISTIC, "rows_independent", "endings_together")
)
def masked_reset_lets_others_go_on(scene: Scene) -> Iterator[Demand]:
    """A masked reset does not change the later steps of the rows outside the mask.

    They keep their step counters, their generators even if a seed is passed, and in NEXT_STEP mode
    the resets that are due. Clear such state under the mask only.
    """
    if scene.n < 2:
        raise NotExercisedError("there is one row")
    ending = scene.ending()
    env, twin = scene.make(), scene.make("twin")
    act = seeded_start(env, ending)
    twin.restart(ending.seed)
    before = scene.choose(range(min(ending.steps, 50) + 1))
    for _ in range(ending.steps - before):
        step_both(env, twin, act())
    free = [i for i in scene.rows if i not in env.last.ended]
    if not free:
        raise NotExercisedError("all rows ended at once")
    i = scene.choose(free)
    due, seed = env.due, scene.choose((None, scene.seed()))
    if due:
        twin.reset_rows(due, seed=seed)
    if scene.subject.asked and not scene.subject.guessed:
        scene.partly(_NO_OPTIONS)
    # Rows that are due would begin otherwise with the options.
    options = {} if due else _some_options(scene)
    mask = np.isin(np.arange(scene.n), [i, *due])
    env.reset(seed=seed, options={**options, "reset_mask": mask})
    scene.judged = True
    for _ in range(before + 2):
        # In DISABLED mode the caller would have to reset different rows in the two.
        if env.due or twin.due:
            return
        one, other = env.step(actions := act()), twin.step(actions)
        for j in (j for j in scene.rows if j != i):
            why = f"as without the reset of row {i}"
            yield from row_alike(env, one, twin, other, j, why)


@error(
    needs=(*NEEDS, "own_generators", "repeatable"),
    after=(*DETERMINISTIC, "reset_clears_pending_autoreset", "seed_works_again"),
)
def masked_reset_restarts_masked(scene: Scene) -> Iterator[Demand]:
    """A masked reset begins a new episode in the rows under the mask.

    With a seed it is the episode that a reset of all rows with that seed, and the same options,
    begins, also right after an end: the reset that was due in NEXT_STEP mode is cleared. If the
    mask is dropped, or applied to the wrong rows, these rows stay in their old episodes.
    """
    ending = scene.ending()
    # Both have the same past: something may last over a reset by design, such as a level.
    env, twin = scene.make(), scene.make("twin")
    act = seeded_start(env, ending)
    twin.restart(ending.seed)
    for _ in range(ending.steps - scene.choose(range(min(ending.steps - 1, 50) + 1))):
        last, _ = step_both(env, twin, act())
    i = scene.choose(last.ended or scene.rows)
    seed, options = scene.seed(), _some_options(scene)
    why = f"as after a reset of all rows with this seed{' and these options' if options else ''}"
    mask = np.isin(np.arange(scene.n), [i, *env.due])
    one = env.reset(seed=seed, options={**options, "reset_mask": mask})
    other = twin.reset(seed=seed, options=options) if options else twin.reset(seed=seed)
    yield from row_alike(env, one, twin, other, i, why)
    # `rows_independent` judges the influence of another row's end.
    ended = set(last.ended)
    for _ in range(2):
        if ended - {i}:
            return
        one, other = step_both(env, twin, scene.actions())
        if {*one.ended, *other.ended} - {i}:
            return
        yield from row_alike(env, one, twin, other, i, why)
        ended = set(one.ended)
        if i in ended:
            return


def _some_options(scene: Scene) -> Mapping[str, Any]:
    """Options that change how an episode begins, if such are known, or none."""
    return scene.choose((None, scene.subject.guess or scene.subject.options)) or {}


@warning(needs=NEEDS)
def bad_mask_rejected(scene: Scene) -> Iterator[Demand]:
    """A `reset_mask` of another length, or of another type than bool, is rejected.

    A list of row numbers that is taken for a mask resets the wrong rows: `[0, 2]` as an index is
    rows 0 and 2, as a mask it is row 1. Raise before any row is reset.
    """
    env, _ = scene.start()
    bad, why = scene.choose(
        [
            (f"np.ones({scene.n + 1}, bool)", f"a mask of length {scene.n + 1}"),
            (f"np.ones({scene.n}, np.int64)", "a mask of ints"),
        ]
    )
    error = scene.caught(env.reset, options=Drawn(f"{{'reset_mask': {bad}}}")).error
    yield expect("{0} is not None", error, should=f"an exception: {why} for {scene.n} rows")
