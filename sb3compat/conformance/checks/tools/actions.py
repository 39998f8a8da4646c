"""Actions: others in one row or in all others, and as the caller made them."""

from __future__ import annotations

from hypothesis import strategies as st

from sb3compat.conformance.checks.tools.spaces import at
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.script import to_source
from sb3compat.conformance.subject.actions import batch_source


def other_action(play: Play, i: int) -> str:
    """Source for `actions` with another one in row i."""
    current = play.value(at(play, "actions", i))
    others = [a for a in play.subject.actions if not play.value("equal")(a, current)]
    if not others:
        raise NotExercisedError("there is one action only")
    return f"replaced(actions, {i}, {to_source(play.draw(st.sampled_from(others)))})"


def other_actions(play: Play, i: int) -> tuple[str, str]:
    """Two batches of actions which differ in all rows but one."""
    known = play.subject.actions
    mine, one, two = (play.draw(st.integers(0, len(known) - 1)) for _ in range(3))
    if one == two:
        two = (one + 1) % len(known)
    batches = [
        [known[mine] if j == i else known[action] for j in range(play.n)] for action in (one, two)
    ]
    first, second = (batch_source("vec_env", batch) for batch in batches)
    return first, second
