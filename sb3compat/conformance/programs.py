"""Programs to record: calls that are drawn, and steered to the ends of episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

from sb3compat.conformance.program.calls import acting
from sb3compat.conformance.record import Drawn, Op, Record
from sb3compat.conformance.subject.actions import batch, sample_source
from sb3compat.conformance.subject.subject import Ending, Subject

# The most steps of a program that leads to no end, and after an end.
_FREE, _AFTER = 8, 4
# How many times as long as the known way to an end a program may be.
_SLACK = 20
# For a program of several episodes: the rounds, the resets before each round, the most endings of a
# row in a round, the fewest steps of all rows in the first round, and the limits of steps, time and
# memory.
_ROUNDS, _RESETS, _ENDS, _FIRST = 8, 3, 3, 500
# The seeds of the rounds begin here; `_opening` draws smaller ones.
_OTHER_SEEDS = 10
_MOST_STEPS, _MOST_SECONDS, _MOST_BYTES = 1500, 1.0, 1e8

Draws = Callable[[Subject, int, Random, Record, Any], Iterator[Op]]


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
        yield from _due(subject, record)
        yield from _opening(subject, draw)
    for _ in range(draw.randint(1, _FREE)):
        yield from _step(subject, _actions(subject, draw), record)


def _to_an_end(
    subject: Subject, ending: Ending, draw: Random, record: Record, env: Any
) -> Iterator[Op]:
    act = acting(env, ending.setup, ending.actions)
    yield from opening(subject, ending.seed)
    left = 3 * ending.steps + _SLACK
    ends = draw.choice((1, 1, 2))
    while left > 0 and ends:
        left -= 1
        yield from _step(subject, act(), record)
        ends -= bool(record.steps and record.calls[-1].complete and record.calls[-1].ended)
    for _ in range(draw.randint(0, _AFTER)):
        yield from _step(subject, act(), record)


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
    yield from _due(subject, record)
    yield Op("step", (actions,))


def _due(subject: Subject, record: Record) -> Iterator[Op]:
    """The reset of the rows that ended, which is up to the caller in DISABLED mode."""
    if rows := due_rows(record):
        mask = np.isin(np.arange(subject.num_envs), rows)
        yield Op("reset", kwargs={"options": {"reset_mask": mask}})


def due_rows(record: Record) -> list[int]:
    """The rows that the caller has to reset before the next step, in DISABLED mode."""
    last = next((call for call in reversed(record.calls) if "obs" in call.copies), None)
    if record.mode != "Disabled" or last is None or not last.is_step:
        return []
    # Another size of the flags is reported by a check.
    return last.ended if last.flags.size == record.num_envs else []


def _actions(subject: Subject, draw: Random) -> Any:
    known = subject.actions
    first = draw.choice(known)
    alike = draw.random() < 0.5
    return batch(subject, [first if alike else draw.choice(known) for _ in range(subject.num_envs)])


def episodes(subject: Subject, number: int, draw: Random, record: Record, env: Any) -> Iterator[Op]:
    """Several episodes of each row, and resets between them, some in the middle of an episode.

    The actions are sampled in every other program, and otherwise those under which an episode
    takes longest. Without a known end there are no calls. The arguments are those of `program`.
    """
    if not subject.endings:
        return
    act = _long_actions(subject, number)
    if isinstance(act, Drawn):
        single = subject.family == "vector_env" and not subject.batched_actions
        yield Op(f"{'single_' * single}action_space.seed", (draw.randint(0, 99),))
    yield from _opening(subject, draw)
    longest = 3 * max(ending.steps for ending in subject.endings) + 10
    left = affordable(subject, record)
    seeded = number % 2 and subject.capabilities.get("seeding")
    for turn in range(_ROUNDS):
        yield from _due(subject, record)
        for _ in range(_RESETS - 1):
            yield from opening(subject, None)
        # A seed that resets by an end are given again shows only if no other reset follows it. Each
        # round has another one, as otherwise all resets after it would be the same again.
        yield from opening(subject, _OTHER_SEEDS + turn if seeded else None)
        ends = np.zeros(subject.num_envs, int)
        # A counter that starts at the reset of all rows shows many episodes later.
        fewest = 0 if turn or number else _FIRST // subject.num_envs
        for count in range(max(longest, fewest)):
            yield from _step(subject, act, record)
            left -= 1
            last = record.calls[-1]
            if left <= 0 or not last.complete:
                return
            ends[[i for i in last.ended if i < subject.num_envs]] += 1
            waits = subject.mode == "NextStep" and last.flags.any()
            enough = ends.min() >= (1 if turn % 2 and not seeded else _ENDS)
            if enough and count >= fewest and not waits:
                break


def _long_actions(subject: Subject, number: int) -> Any:
    """The actions of a program of several episodes."""
    simple = not isinstance(subject.actions[0], dict | tuple)
    if simple and number % 2 == 0:
        return Drawn(sample_source(subject))
    longest = max(subject.endings, key=lambda ending: (ending.truncated, ending.steps))
    return Drawn(longest.actions) if longest.setup else eval(longest.actions, {"np": np})


def affordable(subject: Subject, record: Record) -> int:
    """How many steps a program of several episodes may take, by their time and their memory."""
    size = sum(map(_size, record.calls[-1].copies.values())) if record.calls else 0
    seconds, size = max(subject.step_seconds, 1e-6), max(size, 1)
    return min(_MOST_STEPS, int(_MOST_SECONDS / seconds), int(_MOST_BYTES / size))


def _size(value: object) -> int:
    if isinstance(value, dict | list | tuple):
        return sum(map(_size, value.values() if isinstance(value, dict) else value))
    return int(getattr(value, "nbytes", 0))
