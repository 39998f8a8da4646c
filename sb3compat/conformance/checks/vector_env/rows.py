"""Rows of a VectorEnv: each is its own environment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.actions import other_action
from sb3compat.conformance.checks.tools.leaks import limits_of_their_own
from sb3compat.conformance.checks.tools.lockstep import lockstep
from sb3compat.conformance.checks.tools.shifted import demand_endings_together, demand_rows_alike
from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.checks.tools.twins import start_at
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, SYNC, error
from sb3compat.conformance.contract import BASICS, GYM_AUTORESET, GYM_VECTOR
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.script import to_source
from sb3compat.conformance.record import Record
from sb3compat.conformance.subject.actions import sample_seed_source

_RESULTS = ("obs", "rewards", "terminations", "truncations")
# So many steps must be late by one before the row counts as late.
_LATE = 4
_DRAWN = 4
# So many programs of several episodes each are enough.
_SEVERAL_EPISODES = 8


@error(group="rows", source=GYM_VECTOR, needs=("reference",))
def rows_match_reference(play: Play) -> None:
    """Each row returns the results of its single environment for the same seed and actions.

    The check compares observations, rewards and flags of the first episodes, except for the
    observations at their ends, which have checks of their own. Typical mistakes: actions that
    reach the wrong row, rewards that are cast to ints, a time limit on one side only.
    """
    i = play.draw(st.integers(0, play.n - 1))
    for event in lockstep(play, i, episodes=play.draw(st.integers(1, 2))):
        if event == "reset":
            continue
        pairs = [
            ("rewards", "reward"),
            ("terminations", "terminated"),
            ("truncations", "truncated"),
        ]
        if event == "step":
            pairs.insert(0, ("obs", "expected"))
        for name, expected in pairs:
            got = at(play, name, i)
            should = f"{short(play.value(expected))}, as in its single environment"
            play.demand(f"agrees({got}, {expected})", got, should, i)


@error(group="rows", source=GYM_AUTORESET, needs=("separate_rows",), after=DETERMINISTIC)
def rows_independent(play: Play) -> None:
    """Rows do not influence one another: no row skips or changes a step because of another.

    An environment that resets its rows together, or skips the step of all rows while it resets
    one, invents transitions in rows that go on. Compute the step of all rows, then overwrite the
    rows that are reset. If each row has a seed of its own, its results must not depend on the
    actions of another row. If one generator serves all rows, random numbers may depend on them;
    the check then looks for a row that stands still while another is reset, and is one step late
    from there on. If the rows share a world, or statistics, declare the capability
    `separate_rows` as missing.
    """
    if play.n < 2:
        raise NotExercisedError("there is one row")
    if any(map(play.subject.capabilities.get, ("row_seeds", "alike_rows"))):
        _others_alike(play)
    else:
        play.without_reference()
        _no_row_late(play)


def _others_alike(play: Play) -> None:
    ending = play.ending()
    start_at(play, ending)
    i = play.draw(st.integers(0, play.n - 1))
    disabled = play.subject.mode == "Disabled"
    play.run("played, seen, finals = [], [], []")
    for _ in range(ending.steps + play.draw(st.integers(1, 4))):
        play.run(f"played.append({ending.actions})")
        play.go_on("deepcopy(played[-1])")
        play.run(f"seen.append(deepcopy(({', '.join(_RESULTS)})))")
        if play.subject.mode == "SameStep":
            play.run("finals.append(deepcopy(infos.get('final_obs')))")
    play.run("actions = played[0]")
    other = other_action(play, i)
    play.run("twin = make_env()")
    play.run(f"twin.reset(seed={ending.seed})")
    play.run(f"played = [{other} for actions in played]")
    play.run("other_finals = []")
    play.run(f"others = record(twin, played, {disabled}, other_finals)")
    _first_difference(play, i)


def _first_difference(play: Play, i: int) -> None:
    steps = play.script.steps
    for number in range(steps):
        play.script.steps = number + 1
        for k, name in enumerate(_RESULTS):
            for j in (j for j in range(play.n) if j != i):
                got, expected = (
                    at(play, f"{what}[{number}][{k}]", j)
                    if k == 0
                    else f"{what}[{number}][{k}][{j}]"
                    for what in ("others", "seen")
                )
                _as_with_others(play, got, expected, name, i, j)
        if play.subject.mode != "SameStep" or play.value(f"finals[{number}] is None"):
            continue
        over = play.value(f"np.flatnonzero(ended(*seen[{number}][2:])).tolist()")
        for j in (j for j in over if j != i):
            got, expected = (f"row({what}[{number}], {j})" for what in ("other_finals", "finals"))
            _as_with_others(play, got, expected, "final_obs", i, j)


def _as_with_others(play: Play, got: str, expected: str, name: str, i: int, j: int) -> None:
    should = f"{short(play.value(expected), 80)} ({name}), as it was with other actions in row {i}"
    play.demand(f"equal({got}, {expected})", got, should, j)


def _no_row_late(play: Play) -> None:
    """Random actions, and the same with other actions in one row, show rows that are late."""
    play.make()
    single = play.value("env.single_observation_space")
    if not isinstance(single, spaces.Box) or single.dtype.kind != "f":
        raise NotExercisedError("observations are no vectors of floats")
    if not play.subject.capabilities.get("seeding"):
        raise NotExercisedError("it takes no seeds")
    seed = play.draw_seed()
    t, ended = _past_an_end(play, seed)
    i = play.draw(st.sampled_from(ended))
    exercised = False
    for changed in _changes(play, i, t):
        before = len(play.script.lines)
        play.run("twin = make_env()")
        play.run(f"others = [deepcopy(twin.reset(seed={seed})[0])]")
        play.run(f"changed = {changed}")
        disabled = play.subject.mode == "Disabled"
        play.run(f"others += [step[0] for step in record(twin, changed, disabled={disabled})]")
        for j in (j for j in range(play.n) if j not in ended):
            for start in (t, t + 1):
                exercised = _in_time(play, i, j, start) or exercised
        del play.script.lines[before:]
    if not exercised:
        raise NotExercisedError("no row moves in a way that tells")


def _past_an_end(play: Play, seed: int) -> tuple[int, list[int]]:
    """Reset, and step until a row has ended and some more; returns that step and these rows.

    In the script the actions are `played`, and the observations `seen`. From the end on the
    actions stay the same, so that lateness is the only difference between two runs.

    Raises:
        NotExercisedError: If no row ends.
    """
    play.run(sample_seed_source(play.subject, play.draw(st.integers(0, 9))))
    play.run(f"obs, infos = env.reset(seed={seed})")
    play.run("played, seen = [], [deepcopy(obs)]")
    t, ended = 0, []
    left: int | None = None
    while left != 0:
        again = "played[-1]" if left is not None else play.sample()
        play.run(f"played.append({again})")
        play.go_on("deepcopy(played[-1])")
        play.run("seen.append(deepcopy(obs))")
        if left is None and play.ended():
            t, left, ended = play.script.steps, _LATE + 1, play.ended()
        elif left is not None:
            left -= 1
        if play.script.steps > 300:
            raise NotExercisedError("the episode did not end again")
    return t, ended


def _changes(play: Play, i: int, t: int) -> list[str]:
    """Source for other actions in row i, which ended in step t.

    They differ in the last steps only, or in all. In some of these programs the row does not end.
    """
    begins = [(max(t - last, 0), a) for last, a in product((6, 12), play.subject.actions[:2])]
    changes = [
        f"played[:{begin}] + [replaced(actions, {i}, {to_source(action)}) "
        f"for actions in played[{begin}:]]"
        for begin, action in begins
    ]
    play.run(f"drawn = [[{play.sample()} for _ in played] for _ in range({_DRAWN})]")
    mine = at(play, "actions", i).replace("actions", "others", 1)
    return changes + [
        f"[replaced(actions, {i}, {mine}) for actions, others in zip(played, drawn[{k}])]"
        for k in range(_DRAWN)
    ]


def _in_time(play: Play, i: int, j: int, start: int) -> bool:
    """Whether row j can be judged from this step on."""
    late = f"[obs[{j}] for obs in seen[{start}:{start + _LATE}]]"
    was = f"[obs[{j}] for obs in others[{start - 1}:{start + _LATE - 1}]]"
    values = np.asarray(play.value(was))
    if play.value(f"distinct({was})") < _LATE or (values == np.round(values)).all():
        return False
    play.demand(
        f"not equal({late}, {was})",
        late,
        f"other than what row {j} returned one step earlier, when row {i} acted otherwise: "
        "a step was left out while another row was reset",
        j,
    )
    return True


_ALIKE = ("seeding", "alike_rows", "separate_rows")


@error(
    group="rows",
    source=GYM_AUTORESET,
    needs=("separate_rows",),
    after=(*BASICS["vector_env"], "autoreset_mode_matches_behaviour"),
)
def limits_by_row(record: Record) -> Iterator[Demand]:
    """A row's time limit cuts that row alone, not the episodes of other rows.

    The other rows have begun their episodes later, as an end of their own came first. Their
    episodes would be truncated at ages that have nothing to do with the limit. Typical mistake: one
    counter of steps for all rows.
    """
    yield from limits_of_their_own(record)


@error(
    group="rows",
    source=SYNC,
    needs=_ALIKE,
    programs=_SEVERAL_EPISODES,
    after=(
        *DETERMINISTIC,
        "autoreset_mode_matches_behaviour",
        "rows_match_reference",
        "rows_independent",
        "autoreset_like_reset",
        "final_obs_is_last",
        "obs_is_reset_obs",
        "done_step_returns_final_obs",
        "no_reset_unasked",
    ),
)
def rows_are_alike(play: Play) -> None:
    """Row i under seed s does as row i - 1 under seed s + 1, for the same actions.

    Gymnasium's vector environments seed row i with s + i, so that both have the same seed. Typical
    mistakes: the last row is never stepped, as in `range(n - 1)`; rewards are dealt to the rows in
    reverse; the last observation of an episode is that of another row. Rows may differ by design:
    they are judged where they have done the same up to the end of an episode. If that is chance,
    declare the capability `alike_rows` as missing.
    """
    demand_rows_alike(play)


@error(
    group="rows",
    source=GYM_AUTORESET,
    needs=_ALIKE,
    programs=_SEVERAL_EPISODES,
    after=(*DETERMINISTIC, "autoreset_mode_matches_behaviour", "rows_are_alike"),
)
def endings_together(play: Play) -> None:
    """If several episodes end in one step, each row is reset, and has its own last observation.

    Typical mistakes: only the first of these rows is reset; all of them get the first observation
    of one reset; their last observations are swapped. A row is compared with the one before it
    under the next seed, which has the same seed.
    """
    demand_endings_together(play)
