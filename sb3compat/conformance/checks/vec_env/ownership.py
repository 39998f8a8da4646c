"""What a VecEnv has handed out belongs to the caller."""

from __future__ import annotations

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.actions import demand_actions_unchanged
from sb3compat.conformance.checks.tools.twins import Twins
from sb3compat.conformance.checks.vec_env.marks import (
    DETERMINISTIC,
    ENDINGS,
    error,
    warning,
)
from sb3compat.conformance.contract import BASICS, SB3_GUIDE
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening

_BASICS = BASICS["vec_env"]


@error(group="ownership", source=SB3_GUIDE)
def outputs_unchanged_by_later_steps(play: Play) -> None:
    """Later steps do not change the observations, rewards and dones that a step returned.

    Algorithms keep the last observations during the next step, and store both. If the
    environment writes each batch into the same array, both are equal. Return copies, as
    `DummyVecEnv` does, or new arrays.
    """
    play.start()
    play.run("given = [obs]")
    if play.draw(st.booleans()):
        play.step()
        play.run("given = [obs, rewards, dones]")
    play.run("copies = snapshot(given)")
    for _ in play.steps(4):
        for k in range(len(play.value("given"))):
            what = ("observations", "rewards", "dones")[k]
            was = short(play.value(f"copies[{k}]"), 80)
            should = f"{was}, the {what} that were returned, not changed by a later step"
            play.demand(f"equal(given[{k}], copies[{k}])", f"given[{k}]", should)


@warning(group="ownership", source=SB3_GUIDE, after=(*_BASICS, "outputs_unchanged_by_later_steps"))
def outputs_unchanged_by_reset(play: Play) -> None:
    """A reset does not change the observations, rewards and dones that a step returned.

    Otherwise a caller who keeps the last observations before a reset finds others in their
    place.
    """
    play.start()
    play.step()
    play.run("given = [obs, rewards, dones]")
    play.run("copies = snapshot(given)")
    play.run("obs = env.reset()")
    for k, what in enumerate(("observations", "rewards", "dones")):
        was = short(play.value(f"copies[{k}]"), 80)
        should = f"{was}, the {what} that were returned, not changed by the reset"
        play.demand(f"equal(given[{k}], copies[{k}])", f"given[{k}]", should)


@error(group="ownership", source=SB3_GUIDE, after=ENDINGS)
def terminal_observation_not_aliased(play: Play) -> None:
    """`terminal_observation` has memory of its own, which nothing writes to later.

    A view of a row of `obs`, or of a buffer, changes with it: when the row is reset, or at the
    next end. Typical mistake: `terminal_observation = obs[i]`.
    """
    rows = None
    for _ in play.through_ending(after=0):
        rows = play.ended()
    if not rows:
        raise NotExercisedError
    i = rows[0]
    play.demand(
        f"not overlap(infos[{i}]['terminal_observation'], obs)",
        f"infos[{i}]['terminal_observation']",
        "an array of its own, not a view of obs",
        i,
    )
    play.run(f"last = infos[{i}]['terminal_observation']")
    play.run("copy = snapshot(last)")
    ending = play.subject.endings[0]
    for _ in range(min(3 * ending.steps + 5, 100)):
        play.step(ending.actions)
        was = short(play.value("copy"), 80)
        play.demand("equal(last, copy)", "last", f"{was}, the last of the episode, as it was", i)
        if i in play.ended():
            return


@error(group="ownership", source=SB3_GUIDE, after=(*_BASICS, "infos_n_dicts"))
def infos_unchanged_by_later_steps(play: Play) -> None:
    """Later steps do not change the infos that a step returned.

    Algorithms and callbacks keep them, and read episode statistics after the rollout. Typical
    mistake: one dict for each row that each step fills again. Make new dicts.
    """
    ending = play.known_ending()
    play.make()
    seed = None if ending is None else ending.seed
    for line in opening("vec_env", ending.setup if ending else "", seed):
        play.run(line)
    actions = None if ending is None else ending.actions
    most = 4 if ending is None else min(2 * ending.steps + 2, 60)
    for _ in range(play.draw(st.integers(1, most))):
        play.step(actions)
    play.run("given = infos")
    play.run("copies = snapshot(given)")
    for _ in range(play.draw(st.integers(1, 4))):
        play.step(actions)
        for i in range(play.n):
            was = short(play.value(f"copies[{i}]"), 80)
            should = f"{was}, the info that was returned, not changed by a later step"
            play.demand(f"unchanged(given[{i}], copies[{i}])", f"given[{i}]", should, i)


@error(group="ownership", source=SB3_GUIDE, needs=("seeding",), after=DETERMINISTIC)
def writing_outputs_does_not_change_env(play: Play) -> None:
    """Writing into observations, rewards, dones and infos does not change the environment.

    Algorithms do write: they correct rewards for time limits, normalise observations, and add
    keys to infos. If the environment returns its own state, that changes it. Return copies.
    """
    twins = Twins(play, play.known_ending())
    twins.reset()
    play.run("overwrite(obs)")
    for _ in twins.steps():
        twins.demand_same("as in an instance whose results nobody wrote into")
        play.run("overwrite((obs, rewards, infos))")


@warning(group="ownership", source=SB3_GUIDE)
def actions_unchanged(play: Play) -> None:
    """`step` does not write into the actions that it is given.

    The algorithm stores the actions after the step. If they are clipped or scaled in place, it
    learns from actions that it did not choose.
    """
    demand_actions_unchanged(play)
