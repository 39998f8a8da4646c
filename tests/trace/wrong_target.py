"""A target for the command line: it gives no terminal observations."""

from tests.trace.broken import Vec, no_terminal


def make_env() -> Vec:
    return Vec(no_terminal)
