"""What a VectorEnv has handed out belongs to the caller, and so do the actions."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.clauses import actions_as_before, unchanged_by
from sb3compat.conformance.checks.tools.twins import start_at, step_both
from sb3compat.conformance.checks.vector_env.marks import DETERMINISTIC, STEP, SYNC, error
from sb3compat.conformance.findings import NotExercisedError, short
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.play import Play
from sb3compat.conformance.record import Record

_RESULTS = ("obs", "rewards", "terminations", "truncations")


@error(group="ownership", source=STEP)
def outputs_unchanged_by_later_steps(record: Record) -> Iterator[Demand]:
    """Later steps do not change the results of `reset` and `step`, infos included.

    If the environment fills one buffer again and again, every transition of a rollout has the
    values of the last one. Return copies. (`SyncVectorEnv` with `copy=False` does this on request.)
    """
    for call in record.batches:
        yield from unchanged_by(record, call, "step", "a later step")


@error(group="ownership", source=SYNC, needs=("seeding",), after=DETERMINISTIC)
def writing_outputs_does_not_change_env(play: Play) -> None:
    """Writing into observations, rewards and infos does not change the environment.

    Training code does write: it normalises observations, and corrects rewards for time limits. If
    the environment returns its own state, that changes it. Return copies. (`SyncVectorEnv` with
    `copy=False` does not, on request.)
    """
    ending = play.known_ending()
    if ending is None or ending.seed is None:
        raise NotExercisedError("no end of an episode that can be repeated")
    start_at(play, ending, twin=True)
    play.run("overwrite(obs)")
    for _ in range(ending.steps + play.draw(st.integers(1, 4))):
        step_both(play, ending.actions)
        for name in _RESULTS:
            other = short(play.value(f"twin_{name}"), 80)
            should = f"{other}, as in an instance whose results nobody wrote into"
            play.demand(f"equal({name}, twin_{name})", name, should)
        play.run("overwrite((obs, rewards, infos))")


@error(group="ownership", source=STEP)
def actions_unchanged(record: Record) -> Iterator[Demand]:
    """`step` does not write into the actions that it is given.

    The caller stores the actions after the step. If they are clipped or scaled in place, an agent
    learns from actions that it did not choose.
    """
    yield from actions_as_before(record)
