"""Each row of a VecEnv is one environment, stepped once in each step."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.actions import other_actions
from sb3compat.conformance.checks.tools.endings import several_endings, varied
from sb3compat.conformance.checks.tools.leaks import limits_of_their_own
from sb3compat.conformance.checks.tools.shifted import demand_endings_together, demand_rows_alike
from sb3compat.conformance.checks.tools.singles import Beside, beside
from sb3compat.conformance.checks.vec_env.marks import (
    DETERMINISTIC,
    ENDINGS,
    error,
)
from sb3compat.conformance.contract import SB3_GUIDE, SB3_SOURCE
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.play import Play
from sb3compat.conformance.record import Record
from sb3compat.conformance.subject.subject import Ending

_ALIKE = ("seeding", "alike_rows", "separate_rows")
# So many steps, so that chance is no explanation.
_FEWEST = 3
# So many programs of several episodes each are enough.
_SEVERAL_EPISODES = 8
_COMPARED = tuple(dict.fromkeys((*ENDINGS, *DETERMINISTIC, "rewards_shape")))


@error(
    group="step",
    source=SB3_GUIDE,
    needs=("reference", "seeding"),
    after=(
        *DETERMINISTIC,
        "dones_shape",
        "rewards_shape",
        "seed_returns_n",
        "seeds_differ_by_row",
        "step_obs_in_space",
        "step_equals_async_wait",
    ),
)
def rows_match_reference(play: Play) -> None:
    """Row i returns the results of its single environment under the same seed and actions.

    The comparison ends with the first end of an episode in any row; other checks begin there.
    Typical mistakes: actions or rewards that go to another row, a seed that is not `seed + i`,
    processing that the single environment does not have.
    """
    # Drawn actions differ from row to row; those of an ending may not.
    singles = Beside(play, None if play.draw(st.booleans()) else play.known_ending())
    for i in range(play.n):
        start = short(play.value(f"alone[{i}][0]"), 80)
        should = f"{start}, the first observation of the single environment"
        play.demand(f"close(row(obs, {i}), alone[{i}][0])", f"row(obs, {i})", should, i)
    for _ in singles.steps(after=0):
        for i in play.ended() or range(play.n):
            singles.demand(f"rewards[{i}]", "reward", "the reward of the single environment", i)
            singles.demand(f"bool(dones[{i}])", "done", "as in the single environment", i)
        if play.ended():
            return
        for i in range(play.n):
            singles.demand(f"row(obs, {i})", "obs", "the single environment's observation", i)


@error(group="episode end", source=SB3_GUIDE, after=(*_COMPARED, "rows_independent"))
def no_phantom_transition(play: Play) -> None:
    """The step after the end of an episode is an ordinary one: it takes the action.

    n rows and k steps are n * k transitions, no more and no fewer. Typical mistake: an
    environment in NEXT_STEP mode underneath, which ignores the action after an end and returns a
    reward of zero.
    """
    if beside(play):
        singles = Beside(play, play.ending())
        exercised = False
        for _ in singles.steps():
            for i in sorted(singles.pace):
                if not singles.episodes[i]:
                    continue
                exercised = True
                singles.demand(f"rewards[{i}]", "reward", "as in a step that takes the action", i)
                singles.demand(f"bool(dones[{i}])", "done", "as in the single environment", i)
                if not play.value(f"dones[{i}]"):
                    singles.demand(f"row(obs, {i})", "obs", "as after a step with this action", i)
        if not exercised:
            raise NotExercisedError(
                "no step follows an end at which row and single environment agree"
            )
        return
    play.without_reference()
    if not play.subject.traits.steps_move or not play.subject.endings:
        raise NotExercisedError("steps leave observations as they are, or no episode ended")
    ends = _watched(play, 4 * play.n, play.subject.usual_ending)
    should = "another than before, as the row was stepped; no other step left it so"
    after = [[k + 1 for k, ended in ends.items() if i in ended] for i in range(play.n)]
    judged = [_moves(play, i, ends, after[i], should) for i in range(play.n)]
    if not any(judged):
        raise NotExercisedError("rows stand still in other steps, too")


@error(group="episode end", source=SB3_GUIDE, needs=("separate_rows",), after=_COMPARED)
def rows_independent(play: Play) -> None:
    """The end of an episode in one row leaves the other rows alone.

    The other rows are stepped in the same step, with their own actions, and are not reset.
    Typical mistakes: while one row is reset, the others stand still for a step, or are reset,
    too.
    If the rows share a world, or statistics, declare the capability `separate_rows` as missing.
    """
    if play.n < 2:
        raise NotExercisedError("there is one row")
    if beside(play):
        _held_against_singles(play)
        return
    play.without_reference()
    # Rows with generators of their own: environments of their own, or a seed for each.
    apart = any(map(play.subject.capabilities.get, ("sub_envs", "row_seeds")))
    if apart and not play.subject.missing(("seeding",)):
        _held_against_other_actions(play)
        if not play.subject.traits.steps_move or not play.subject.endings:
            return
        play.script.lines.clear()  # the statements so far are another program, which passed
    _not_frozen(play)


@error(group="episode end", source=SB3_GUIDE, needs=("separate_rows",), after=ENDINGS)
def limits_by_row(record: Record) -> Iterator[Demand]:
    """A row's time limit cuts that row alone, not the episodes of other rows.

    The other rows have begun their episodes later, as an end of their own came first. Their
    episodes would be truncated at ages that have nothing to do with the limit. Typical mistake: one
    counter of steps for all rows.
    """
    yield from limits_of_their_own(record)


def _held_against_singles(play: Play) -> None:
    singles = Beside(play, play.ending())
    exercised = some = False
    for _ in singles.steps():
        some = some or bool(play.ended())
        for i in sorted(singles.pace) if some else []:
            if singles.episodes[i] or i in singles.ended:
                continue
            exercised = True
            singles.demand(f"rewards[{i}]", "reward", "as without an end in another row", i)
            singles.demand(f"bool(dones[{i}])", "done", "as without an end in another row", i)
            singles.demand(f"row(obs, {i})", "obs", "as without an end in another row", i)
    if not exercised:
        raise NotExercisedError(
            "no row agrees with its single environment up to an end of another row"
        )


def _held_against_other_actions(play: Play) -> None:
    """Rows with generators of their own: the actions of other rows must not show at all."""
    ending = play.known_ending()
    seed = play.draw_seed()
    mine = play.draw_seed() % play.n
    first, second = other_actions(play, mine)
    play.run("env, twin = make_env(), make_env()")
    for name in ("env", "twin"):
        play.run(f"{name}.seed({seed})")
    play.run("obs = env.reset()")
    play.run("twin_obs = twin.reset()")
    for _ in range(8 if ending is None else min(2 * ending.steps + 10, 300)):
        play.run(f"obs, rewards, dones, infos = env.step({first})")
        play.run(f"twin_obs, twin_rewards, twin_dones, twin_infos = twin.step({second})")
        parts = [(f"{name}[{mine}]", f"twin_{name}[{mine}]") for name in ("rewards", "dones")]
        over = play.value(f"bool(dones[{mine}])")
        if over:
            last = f"[{mine}].get('terminal_observation')"
            parts.append((f"infos{last}", f"twin_infos{last}"))
        for got, other in parts:
            should = short(play.value(other), 80) + _OTHERS
            play.demand(f"equal({got}, {other})", got, should, mine)
        if over:
            return
        play.demand(
            f"equal(row(obs, {mine}), row(twin_obs, {mine}))",
            f"row(obs, {mine})",
            short(play.value(f"row(twin_obs, {mine})"), 80) + _OTHERS,
            mine,
        )


_OTHERS = ", as in the other instance, where only the actions of other rows differ"


def _not_frozen(play: Play) -> None:
    """Rows that may share a generator cannot be compared, but a row that stands still shows."""
    if not play.subject.traits.steps_move or not play.subject.endings:
        raise NotExercisedError("steps leave observations as they are, or no episode ended")
    ends = _watched(play, 3 * play.n, varied(play))
    should = "another than before, as the row was stepped while others were reset"
    others = [[k for k, ended in ends.items() if i not in ended] for i in range(play.n)]
    judged = [_moves(play, i, ends, others[i], should) for i in range(play.n)]
    if not any(judged):
        raise NotExercisedError("rows stand still in other steps, too")


def _watched(play: Play, wanted: int, ending: Ending | None) -> dict[int, list[int]]:
    """Step until so many rows have ended; returns the rows that ended, by step.

    In the script `seen[k]` are the observations after step k.
    """
    play.run("seen = []")
    ends = {}
    for ended in several_endings(play, wanted, "seen.append(snapshot(obs))", ending):
        ends[play.script.steps] = ended
    play.run("seen.append(obs)")
    return ends


def _moves(play: Play, i: int, ends: dict[int, list[int]], steps: list[int], should: str) -> bool:
    """Demand that a row moves in some of these steps, if it moves in all others.

    Returns False if that cannot be told: a row that also stands still in others has reasons of its
    own, such as walls.
    """
    over = {k for k, ended in ends.items() if i in ended}
    asked = [k for k in steps if k not in over and k <= play.script.steps]
    others = set(range(1, play.script.steps + 1)) - {*asked, *over}

    def still(k: int) -> bool:
        return bool(play.value(f"equal(row(seen[{k - 1}], {i}), row(seen[{k}], {i}))"))

    if min(len(asked), len(others)) < _FEWEST or any(map(still, others)):
        return False
    if all(map(still, asked)):
        k = asked[-1]
        condition = f"not equal(row(seen[{k - 1}], {i}), row(seen[{k}], {i}))"
        play.demand(condition, f"row(seen[{k}], {i})", should, i)
    return True


@error(
    group="step",
    source=SB3_SOURCE,
    needs=_ALIKE,
    programs=_SEVERAL_EPISODES,
    after=(
        *_COMPARED,
        "seed_works_again",
        "rows_match_reference",
        "rows_independent",
        "autoreset_like_reset",
        "no_phantom_transition",
        "terminal_observation_is_last",
        "obs_after_done_is_reset_obs",
    ),
)
def rows_are_alike(play: Play) -> None:
    """Row i under seed s does as row i - 1 under seed s + 1, for the same actions.

    `seed(s)` gives row i the seed s + i, so that both have the same one. Typical mistakes: the last
    row is never stepped, as in `range(n - 1)`; rewards are dealt to the rows in reverse; the last
    observation of an episode is that of another row. Rows may differ by design: they are judged
    where they have done the same up to the end of an episode. If that is chance, declare the
    capability `alike_rows` as missing.
    """
    demand_rows_alike(play)


@error(
    group="episode end",
    source=SB3_GUIDE,
    needs=_ALIKE,
    after=(*_COMPARED, "rows_are_alike"),
    programs=_SEVERAL_EPISODES,
)
def endings_together(play: Play) -> None:
    """If several episodes end in one step, each row is reset, and has its own last observation.

    Typical mistakes: only the first of these rows is reset; all of them get the first observation
    of one reset; their last observations are swapped, as they are stored in the order of the ends.
    A row is compared with the one before it under the next seed, which has the same seed.
    """
    demand_endings_together(play)
