"""Resets of some rows, `reset(options={"reset_mask": mask})`, in every mode that has them."""

from __future__ import annotations

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import demand_like_twin, start_at, step_both
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, SYNC, error, warning
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play

GROUP = "masked reset"
NEEDS = ("masked_reset",)
APART = (*NEEDS, "separate_rows")


@error(group=GROUP, source=SYNC, needs=APART)
def masked_reset_leaves_others(play: Play) -> None:
    """A masked reset leaves the rows outside the mask where they are.

    Their observations are those of the last step, and their episodes go on. An environment that
    ignores the mask resets all rows, and running episodes end without a flag. Read
    `options["reset_mask"]`.
    """
    if play.n < 2:
        raise NotExercisedError("there is one row")
    play.start()
    for _ in play.steps(4):
        pass
    masked = {play.draw(st.integers(0, play.n - 1)), *play.awaiting_reset()}
    play.run("before = deepcopy(obs)")
    play.reset_rows(sorted(masked))
    for j in sorted(set(range(play.n)) - masked):
        got, was = at(play, "obs", j), at(play, "before", j)
        should = f"{short(play.value(was))}, as before the reset of other rows"
        play.demand(f"equal({got}, {was})", got, should, j)


@error(
    group=GROUP,
    source=SYNC,
    needs=(*APART, "row_seeds"),
    after=(*DETERMINISTIC, "rows_independent"),
)
def masked_reset_lets_others_go_on(play: Play) -> None:
    """A masked reset does not change how the rows outside the mask go on.

    They keep their step counters, and in NEXT_STEP mode the resets that are due. Clear such state
    under the mask only.
    """
    if play.n < 2:
        raise NotExercisedError("there is one row")
    ending = play.ending()
    start_at(play, ending, twin=True)
    before = play.draw(st.integers(0, min(ending.steps, 50)))
    for _ in range(ending.steps - before):
        step_both(play, ending.actions)
    free = [i for i in range(play.n) if not play.script.steps or i not in play.ended()]
    if not free:
        raise NotExercisedError("all rows ended at once")
    i = play.draw(st.sampled_from(free))
    due = play.awaiting_reset()
    if due:
        play.reset_rows(due, "twin")
    play.reset_rows(sorted({i, *due}))
    for _ in range(before + 2):
        # In DISABLED mode the caller would have to reset different rows in the two.
        if play.awaiting_reset() or (
            play.subject.mode == "Disabled"
            and play.script.steps
            and play.value("ended(twin_terminations, twin_truncations).any()")
        ):
            return
        step_both(play, ending.actions)
        for j in (j for j in range(play.n) if j != i):
            for name in ("obs", "rewards", "terminations", "truncations"):
                demand_like_twin(play, name, j, f"as without the reset of row {i}")


@error(
    group=GROUP,
    source=SYNC,
    needs=(*NEEDS, "row_seeds", "repeatable"),
    after=(*DETERMINISTIC, "reset_clears_pending_autoreset"),
)
def masked_reset_restarts_masked(play: Play) -> None:
    """A masked reset begins a new episode in the rows under the mask.

    With a seed it is the episode that a reset of all rows with that seed begins, also right after
    an end: the reset that was due in NEXT_STEP mode is cleared. If the mask is dropped, or applied
    to the wrong rows, these rows stay in their old episodes.
    """
    ending = play.ending()
    start_at(play, ending)
    for _ in range(ending.steps - play.draw(st.integers(0, min(ending.steps - 1, 50)))):
        play.go_on(ending.actions)
    rows = play.ended()
    i = play.draw(st.sampled_from(rows or range(play.n)))
    seed = play.draw(st.integers(0, 9))
    play.reset_rows(sorted({i, *play.awaiting_reset()}), seed=seed)
    play.run("twin = make_env()")
    play.run(f"twin_obs, twin_infos = twin.reset(seed={seed})")
    _alike(play, "obs", i)
    for _ in range(2):
        # `rows_independent` judges the influence of another row's end.
        if set(play.ended()) - {i}:
            return
        step_both(play, play.actions())
        twins = play.value("np.flatnonzero(ended(twin_terminations, twin_truncations)).tolist()")
        if {*play.ended(), *twins} - {i}:
            return
        for name in ("obs", "rewards", "terminations", "truncations"):
            _alike(play, name, i)
        if i in play.ended():
            return


def _alike(play: Play, name: str, i: int) -> None:
    demand_like_twin(play, name, i, "as in an environment reset with this seed")


@warning(group=GROUP, source=SYNC, needs=NEEDS)
def bad_mask_rejected(play: Play) -> None:
    """A `reset_mask` of another length, or of another type than bool, is rejected.

    A list of row numbers that is taken for a mask resets the wrong rows: `[0, 2]` as an index is
    rows 0 and 2, as a mask it is row 1. Raise before any row is reset.
    """
    play.start()
    bad, why = play.draw(
        st.sampled_from(
            [
                (f"np.ones({play.n + 1}, bool)", f"a mask of length {play.n + 1}"),
                (f"np.ones({play.n}, np.int64)", "a mask of ints"),
            ]
        )
    )
    play.run(f"error = caught(lambda: env.reset(options={{'reset_mask': {bad}}}))")
    play.demand("error is not None", "error", f"an exception: {why} for {play.n} rows")
