"""Programs to record: calls that are drawn, and steered to the ends of episodes."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Op, Record
from sb3compat.conformance.subject.actions import batch_source
from sb3compat.conformance.subject.subject import Ending, Subject

# The most steps of a program that leads to no end, and after an end.
_FREE, _AFTER = 8, 4
# How much longer than the known way to an end a program may take.
_SLACK = 20


def program(subject: Subject, number: int, draw: Random, record: Record, env: Any) -> Iterator[Op]:
    """The calls of a program, drawn one by one.

    The first programs lead to the known ends of episodes, one after the other. Later ones do so or
    make some steps under drawn actions, and some begin with a reset in the middle of an episode.

    Args:
        subject: The environment.
        number: The number of the program.
        draw: The source of all that is drawn.
        record: What the calls so far have returned.
        env: The environment, whose action space some programs sample from.
    """
    known = subject.endings
    if known and (number < len(known) or draw.random() < 0.7):
        yield from _to_an_end(
            subject, known[number] if number < len(known) else draw.choice(known), draw, record, env
        )
        return
    yield from _opening(subject, draw)
    if draw.random() < 0.3:
        for _ in range(draw.randint(1, _FREE // 2)):
            yield from _step(subject, _actions(subject, draw), record)
        yield from _opening(subject, draw)
    for _ in range(draw.randint(1, _FREE)):
        yield from _step(subject, _actions(subject, draw), record)


def _to_an_end(
    subject: Subject, ending: Ending, draw: Random, record: Record, env: Any
) -> Iterator[Op]:
    names = {"env": env, "np": np, **PRELUDE}
    if ending.setup:
        exec(ending.setup, names)
    act = compile(ending.actions, "<actions>", "eval")
    yield from opening(subject, ending.seed)
    left = 3 * ending.steps + _SLACK
    ends = draw.choice((1, 1, 2))
    while left > 0 and ends:
        left -= 1
        yield from _step(subject, eval(act, names), record)
        ends -= bool(record.steps and record.calls[-1].complete and record.calls[-1].ended)
    for _ in range(draw.randint(0, _AFTER)):
        yield from _step(subject, eval(act, names), record)


def opening(subject: Subject, seed: int | None) -> Iterator[Op]:
    """The calls that reset all rows, with a seed unless it is None."""
    if subject.family == "vec_env":
        if seed is not None:
            yield Op("seed", (seed,))
        yield Op("reset")
    else:
        yield Op("reset", kwargs={} if seed is None else {"seed": seed})


def _opening(subject: Subject, draw: Random) -> Iterator[Op]:
    seeding = subject.capabilities.get("seeding")
    return opening(subject, draw.randint(0, 9) if seeding else None)


def _step(subject: Subject, actions: Any, record: Record) -> Iterator[Op]:
    """A step; in DISABLED mode, a reset of the rows that ended comes first."""
    last = record.calls[-1]
    if subject.mode == "Disabled" and last.op.method == "step" and last.flags.any():
        yield Op("reset", kwargs={"options": {"reset_mask": last.flags.copy()}})
    yield Op("step", (actions,))


def _actions(subject: Subject, draw: Random) -> Any:
    known = subject.actions
    first = draw.choice(known)
    alike = draw.random() < 0.5
    return batch(subject, [first if alike else draw.choice(known) for _ in range(subject.num_envs)])


def batch(subject: Subject, actions: list[Any]) -> Any:
    """A batch of these single actions, one for each row."""
    return eval(batch_source(subject.family, actions), {"np": np})
