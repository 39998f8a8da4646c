"""Ways through ends of episodes."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

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
