"""How many programs a check runs on an environment, depending on the time of one program.

The budget is a number of programs and steps, not a time: with the same seed the report must be the
same on a busy machine, too. Measured times are used by their order of magnitude only.
"""

from __future__ import annotations

import math

from sb3compat.conformance.subject.subject import Subject

MOST_PROGRAMS = 25
# Pairs: up to this many seconds for one program, a check runs this many programs.
_PROGRAMS = ((0.06, MOST_PROGRAMS), (0.15, 8), (0.3, 4), (0.6, 2))
_FEWEST = 1
# What the kit itself takes for a step, which counts in long episodes of quick environments.
_OWN_SECONDS = 1e-4
# Programs of several episodes, and their number if a step takes more seconds than that, or if each
# needs an instance that takes long.
_LONG_PROGRAMS, _FEW_LONG_PROGRAMS, _SLOW_STEP, _FEWEST_LONG_PROGRAMS = 3, 2, 0.016, 1
# For each of these programs, this many further ones may be run to shrink a failure.
_SHRINKS = 12
_FEWEST_SHRINKS = 8
# Instances for that take so many seconds at most, or there is one.
_MAKING_AGAIN = 8.0
# Pairs: up to this many seconds for one step, a search for an ending makes this many steps.
_STEPS = ((0.0005, 3000), (0.002, 1000), (0.008, 300), (0.032, 100))
_FEWEST_STEPS = 40
# The seconds for the last search, if all others have found nothing.
_PATIENCE = 8.0
# The seconds for making the instances of the programs of a check, and their smallest number.
_MAKING, _FEWEST_MAKES = 0.5, 1
# So many instances are made ahead for forks; a check seldom needs more.
MADE_AHEAD = 4
# The needs of a usual program: constructions, resets, and steps in addition to those to an ending.
_MAKES, _RESETS, _MORE_STEPS = 1.5, 3, 10
_STEPS_WITHOUT_END = 30
# Training, and the scripts of a few failures.
_BESIDES = 5.0


def rough(seconds: float) -> float:
    """A time, rounded up to the next power of two."""
    return float(2 ** math.ceil(math.log2(seconds))) if seconds > 0 else 0.0


def program_seconds(subject: Subject) -> float:
    """About the time of a program that makes an environment, and steps to the end of an episode."""
    steps = subject.endings[0].steps + _MORE_STEPS if subject.endings else _STEPS_WITHOUT_END
    makes = 0 if subject.shared else _MAKES
    return (
        makes * subject.make_seconds
        + _RESETS * subject.reset_seconds
        + steps * (subject.step_seconds + _OWN_SECONDS)
    )


def programs_of(subject: Subject) -> int:
    """How many programs a check runs."""
    seconds = program_seconds(subject)
    return next((count for limit, count in _PROGRAMS if seconds <= limit), _FEWEST)


def long_programs_of(subject: Subject) -> int:
    """How many programs of several episodes there are."""
    if subject.forked and not subject.shared:
        return _FEWEST_LONG_PROGRAMS
    return _FEW_LONG_PROGRAMS if subject.step_seconds > _SLOW_STEP else _LONG_PROGRAMS


def makes_of(subject: Subject) -> float:
    """How many instances a check makes, where those that are used or made ahead do not do."""
    if subject.forked:
        return MADE_AHEAD - 1
    if not subject.shared:
        return math.inf
    return max(math.floor(_MAKING / subject.make_seconds), _FEWEST_MAKES)


def shrinks_of(subject: Subject, programs: int) -> int:
    """How many further programs, of new instances, a check runs to make a failure smaller."""
    affordable = math.floor(_MAKING_AGAIN / max(subject.make_seconds, 1e-6))
    return max(min(max(_SHRINKS * (programs - 1), _FEWEST_SHRINKS), affordable), 1)


def steps_of(step_seconds: float, *, patient: bool = False) -> int:
    """How many steps a search for the end of an episode makes with one policy.

    Args:
        step_seconds: The time of a step.
        patient: Whether this is the last search, after several that have found nothing.
    """
    usual = next((count for limit, count in _STEPS if step_seconds <= limit), _FEWEST_STEPS)
    return max(usual, math.floor(_PATIENCE / step_seconds)) if patient and step_seconds else usual


def estimate(subject: Subject, checks: int, programs: int) -> float:
    """About how many seconds this number of checks takes."""
    return checks * programs * program_seconds(subject) + _BESIDES * (checks > _BESIDES)
