"""Rows of a VectorEnv: each its own environment; and what happens to them after an error."""

from __future__ import annotations

from itertools import product

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

from sb3compat.conformance.checks.vector_env_tools import (
    SEEDED,
    SYNC,
    at,
    error,
    lockstep,
    other_action,
    seeded,
    start_at,
    warning,
)
from sb3compat.conformance.contract import GYM_AUTORESET, GYM_VECTOR, NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.script import to_source
from sb3compat.conformance.subject import opening

_RESULTS = ("obs", "rewards", "terminations", "truncations")
# So many steps have to be late by one before it is called that.
_LATE = 4


@error(group="rows", source=GYM_VECTOR, needs=("reference",))
def rows_match_reference(play: Play) -> None:
    """Each row returns what its single environment returns for the same seed and actions.

    Observations, rewards and flags of the first episode, save the observation at its end, which
    has checks of its own. Typical mistakes are actions that reach the wrong row,
    rewards that are cast to ints, and a time limit that one side does not have.
    """
    i = play.draw(st.integers(0, play.n - 1))
    for event in lockstep(play, i):
        pairs = [
            ("rewards", "reward"),
            ("terminations", "terminated"),
            ("truncations", "truncated"),
        ]
        if event == "step":
            pairs.insert(0, ("obs", "expected"))
        for name, expected in pairs:
            got = at(play, name, i)
            should = f"{short(play.value(expected))}, as of its single environment"
            play.demand(f"agrees({got}, {expected})", got, should, i)


@error(group="rows", source=GYM_AUTORESET, after=SEEDED)
def rows_independent(play: Play) -> None:
    """What happens in one row does not touch the others: no step of theirs is skipped or changed.

    An environment that resets its rows together, or leaves the step of all rows out while it
    resets one, makes up transitions in rows that go on. Compute the step of all rows, then
    overwrite those that are reset. Where each row has a seed of its own, its results must not
    depend on the actions of another. Where one generator serves all rows, random numbers may,
    and what is seen is a row that stands still for the step in which another is reset, and then
    goes on one step late.
    """
    if play.n < 2:
        raise NotExercisedError
    if play.subject.capabilities.get("row_seeds"):
        _others_alike(play)
    else:
        _no_row_late(play)


def _others_alike(play: Play) -> None:
    ending = play.ending()
    start_at(play, ending)
    i = play.draw(st.integers(0, play.n - 1))
    disabled = play.subject.mode == "Disabled"
    play.run("played, seen = [], []")
    for _ in range(ending.steps + play.draw(st.integers(1, 4))):
        play.run(f"played.append({ending.actions})")
        play.go_on("played[-1]")
        play.run(f"seen.append(deepcopy(({', '.join(_RESULTS)})))")
    play.run("actions = played[0]")
    other = other_action(play, i)
    play.run("twin = make_env()")
    play.run(f"twin.reset(seed={ending.seed})")
    play.run(f"played = [{other} for actions in played]")
    play.run(f"others = record(twin, played, disabled={disabled})")
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
                was = short(play.value(expected), 80)
                should = f"{was} ({name}), as it was with other actions in row {i}"
                play.demand(f"equal({got}, {expected})", got, should, j)


def _no_row_late(play: Play) -> None:
    """Random actions, and the same with others in one row: rows that are late show in this."""
    play.make()
    single = play.value("env.single_observation_space")
    if not isinstance(single, spaces.Box) or single.dtype.kind != "f":
        raise NotExercisedError  # what repeats by chance proves nothing
    if not play.subject.capabilities.get("seeding"):
        raise NotExercisedError
    seed = seeded(play)
    play.run(f"env.action_space.seed({play.draw(st.integers(0, 9))})")
    play.run(f"obs, infos = env.reset(seed={seed})")
    play.run("played, seen = [], [deepcopy(obs)]")
    disabled = play.subject.mode == "Disabled"
    t = 0
    left: int | None = None
    while left != 0:
        # The same actions from the end on, so that a step late is the only difference.
        again = "played[-1]" if left is not None else "env.action_space.sample()"
        play.run(f"played.append({again})")
        play.go_on("played[-1]")
        play.run("seen.append(deepcopy(obs))")
        if left is None and play.ended():
            t, left, ended = play.script.steps, _LATE + 1, play.ended()
        elif left is not None:
            left -= 1
        if play.script.steps > 300:
            raise NotExercisedError
    i = play.draw(st.sampled_from(ended))
    exercised = False
    # Others in its last steps only, so that its episode goes on for a while.
    for last, action in product((6, 12), play.subject.actions[:2]):
        play.run("twin = make_env()")
        play.run(f"others = [deepcopy(twin.reset(seed={seed})[0])]")
        begin, other = max(t - last, 0), f"replaced(actions, {i}, {to_source(action)})"
        changed = f"[{other} for actions in played[{begin}:]]"
        replay = f"record(twin, played[:{begin}] + {changed}, disabled={disabled})"
        play.run(f"others += [step[0] for step in {replay}]")
        for j in (j for j in range(play.n) if j not in ended):
            for start in (t, t + 1):
                exercised = _in_time(play, i, j, start) or exercised
        play.script.lines[-3:] = []
    if not exercised:
        raise NotExercisedError


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
        raise NotExercisedError
    more = play.draw(st.booleans()) or play.n == 1
    return to_source(np.stack([action] * (play.n + 1 if more else play.n - 1)))


@error(group="step", source=SYNC, after=SEEDED)
def no_stale_result_after_error(play: Play) -> None:
    """After a `step` that raised, the next call returns its own result.

    Where actions were sent to workers before the error, their answers wait, and the next step
    returns them: from then on every result is that of the step before, without an error. Check
    actions before anything is sent, or collect the answers. `AsyncVectorEnv` does neither, up to
    Gymnasium 1.4.
    """
    if not play.subject.capabilities.get("seeding"):
        raise NotExercisedError
    known = play.subject.actions
    if len(known) < 2 or isinstance(known[0], dict | tuple):
        raise NotExercisedError
    rejected, right = known[play.draw(st.integers(0, 1))], known[1]
    if play.value("equal")(rejected, right):
        rejected, right = right, known[0]
    seed = seeded(play)
    play.run("env, twin = make_env(), make_env()")
    for line in opening(play.family, "", seed):
        play.run(line)
    wrong = to_source(np.stack([rejected] * (play.n + 1)))
    play.run(f"error = caught(lambda: env.step({wrong}))")
    if play.value("error") is None:
        raise NotExercisedError
    actions = to_source(np.stack([right] * play.n))
    play.run(f"twin.reset(seed={seed})")
    play.run(f"fresh = deepcopy(twin.step({actions})[:4])")
    if play.value("np.any(fresh[2:])"):
        raise NotExercisedError
    # What the rejected actions would have led to, had they been one less.
    play.run(f"twin.reset(seed={seed})")
    play.run(f"stale = deepcopy(twin.step({to_source(np.stack([rejected] * play.n))})[:4])")
    if play.value("np.any(stale[2:])"):
        raise NotExercisedError
    # Rows that were stepped before the error answer for themselves with what follows both.
    play.run(f"both = deepcopy(twin.step({actions})[:4])")
    if play.value("equal(stale, fresh) or equal(stale, both)"):
        raise NotExercisedError
    play.run("results = []")
    play.run(f"error = caught(lambda: results.extend(env.step({actions})))")
    if play.value("error") is not None:
        return
    play.demand(
        "not equal(results[:4], stale)",
        "results[0]",
        f"{short(play.value('fresh[0]'))}, or else anything but the result of the rejected step",
    )
