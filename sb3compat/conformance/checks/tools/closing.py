"""Does `close` return?"""

from __future__ import annotations

from sb3compat.conformance.play import Play


def patience(play: Play) -> int:
    """The seconds after which a call of `close` counts as hung."""
    return 2 + round(10 * play.subject.make_seconds)


def demand_close_returns(play: Play) -> None:
    """Demand that `env.close()` returns."""
    play.run(f"error = within({patience(play)}, env.close)")
    if play.value("isinstance(error, str)"):
        play.script.opened.clear()  # it would hang once more
    play.demand("not isinstance(error, str)", "error", "no hang: `close` returns")
