"""Ways through ends of episodes."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.subject.subject import Ending

# The time for one program with several endings.
_MOST_SECONDS = 2.0


def some_steps(play: Play) -> Iterator[int]:
    """After a reset: a few steps, or from the start to the end of an episode."""
    through = play.draw(st.booleans())
    steps = play.through_ending(0) if through and play.subject.endings else play.steps()
    for number in steps:
        yield number
        if play.ended():
            return


def varied(play: Play) -> Ending:
    """An ending whose actions are sampled, so that no wall is in the way each time.

    Raises:
        NotExercisedError: If there is none, and observations may stay as they are by design.
    """
    sampled = [ending for ending in play.subject.endings if ending.setup]
    if not sampled and not (play.subject.endings and play.subject.traits.continuous):
        raise NotExercisedError("observations may stay as they are by design")
    return (sampled or play.subject.endings)[0]


def several_endings(
    play: Play, wanted: int = 3, keep: str = "", ending: Ending | None = None
) -> Iterator[list[int]]:
    """Start and step until some rows have ended; yields the rows that ended, after each such step.

    Args:
        play: The run.
        wanted: The number of endings.
        keep: A statement to run before each step.
        ending: The actions; None for those with which the traits were found.

    Raises:
        NotExercisedError: If there were fewer.
    """
    ending = ending or play.subject.usual_ending
    if ending is None:
        raise NotExercisedError("no episode ended")
    longest = max(known.steps for known in play.subject.endings)
    play.make()
    for line in opening("vec_env", ending.setup, ending.seed):
        play.run(line)
    affordable = int(_MOST_SECONDS / max(play.subject.step_seconds, 1e-6))
    for _ in range(min(3 * wanted * longest + 20, max(affordable, longest))):
        if keep:
            play.run(keep)
        play.step(ending.actions)
        ended = play.ended()
        if ended:
            wanted -= len(ended)
            yield ended
        if wanted <= 0:
            return
    raise NotExercisedError("too few episodes ended")


def episode_ends(play: Play) -> int:
    """Play until three episodes of a row have ended; returns the row.

    In the script their last observations are in the list `last`, and the first ones of the
    episodes after them in the list `first`.

    Raises:
        NotExercisedError: If fewer episodes end, or all begin alike: last observations that equal
            first ones would then prove nothing.
    """
    ending = play.ending()
    mode = play.subject.mode
    play.make()
    for line in opening(play.family, ending.setup, ending.seed):
        play.run(line)
    play.run("last, first = [], []")
    i = None
    over = False
    for _ in range(4 * ending.steps + 60):
        rows = play.awaiting_reset()
        if rows:
            play.reset_rows(rows)
            if i in rows:
                play.run(f"first.append(deepcopy({at(play, 'obs', i)}))")
        if play.value("len(first)") == 3:
            break
        play.step(ending.actions)
        if over:
            play.run(f"first.append(deepcopy({at(play, 'obs', i)}))")
            over = False
        elif ended := play.ended():
            i = play.draw(st.sampled_from(ended)) if i is None else i
            if i not in ended:
                continue
            got = f"row(infos['final_obs'], {i})" if mode == "SameStep" else at(play, "obs", i)
            play.run(f"last.append(deepcopy({got}))")
            if mode == "SameStep":
                play.run(f"first.append(deepcopy({at(play, 'obs', i)}))")
            over = mode == "NextStep"
    if i is None or play.value("len(first)") < 3 or play.value("distinct(first)") < 3:
        raise NotExercisedError("too few episodes of a row ended, or all begin alike")
    return i
