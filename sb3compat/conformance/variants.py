"""The same program once more, with one difference that must not matter, or must matter.

Each variant is a function of the record of a program, and of what the calls of the other instance,
`twin`, have returned so far; the kit makes the calls that it returns, and a comparison judges the
two records together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from sb3compat.conformance.program.script import PRELUDE, to_source
from sb3compat.conformance.programs import due_rows, opening
from sb3compat.conformance.record import DRAW_ELSEWHERE, OVERWRITE, Call, Drawn, Op, Record
from sb3compat.conformance.subject.actions import batch

# How far a seed that must not matter is from the one before it.
_OTHER = 7
# So many times the steps to an end are made under another seed to come to one.
_TURNS = 4


def again(record: Record, twin: Record) -> Iterator[Op]:
    """The same calls, while other code draws from the global generators."""
    for op in record.made_ops:
        yield op
        if op.method == "reset":
            yield Op(DRAW_ELSEWHERE, kind="function")


def under_other_seeds(record: Record, twin: Record) -> Iterator[Op]:
    """The calls of `again`, under other seeds."""
    for op in again(record, twin):
        seed = op.kwargs.get("seed")
        if op.method == "seed":
            yield Op("seed", (op.args[0] + _OTHER,))
        elif isinstance(seed, int):
            yield Op(op.method, op.args, {**op.kwargs, "seed": seed + _OTHER})
        else:
            yield op


def in_two_halves(record: Record, twin: Record) -> Iterator[Op]:
    """Each `step` as `step_async` and `step_wait`."""
    for op in record.made_ops:
        if op.method == "step":
            yield Op("step_async", op.args)
            yield Op("step_wait")
        else:
            yield op


def with_writing(record: Record, twin: Record) -> Iterator[Op]:
    """All results are written into."""
    for op in record.made_ops:
        yield op
        if op.method in ("reset", "step"):
            yield Op(OVERWRITE)


def in_one_array(record: Record, twin: Record) -> Iterator[Op]:
    """The actions of all steps in one array, which is filled again each time."""
    for call in record.calls:
        actions = call.copies.get("actions")
        if isinstance(actions, np.ndarray):
            yield Op("step", (Drawn(f"refilled({to_source(actions)})"),))
        else:
            yield call.op


def seeded_late(record: Record, twin: Record) -> Iterator[Op]:
    """A call of `seed` after the first step that no reset follows."""
    ops = record.made_ops
    resets = [k for k, op in enumerate(ops) if op.method == "reset"]
    place = resets[-1] + 2 if resets else 0
    if 0 < place < len(ops):
        seed = max((int(op.args[0]) for op in ops if op.method == "seed"), default=0)
        yield from (*ops[:place], Op("seed", (seed + _OTHER,)), *ops[place:])


# The way to the first end


def first_end(record: Record) -> list[Call]:
    """The steps up to the first end; none if they do not begin with the only reset, and a seed."""
    seed, resets = seed_of(record), record.resets
    ends = [k for k, step in enumerate(record.steps) if step.flags.any()]
    if seed is None or not ends:
        return []
    steps = record.steps[: ends[0] + 1]
    return [] if len(resets) > 1 and resets[1].number < steps[-1].number else steps


def after_first_end(record: Record) -> list[Call]:
    """The steps after the first end, up to the next reset of all rows."""
    way = first_end(record)
    if not way:
        return []
    resets = [call for call in record.resets if call.mask is None]
    until = min((c.number for c in resets if c.number > way[-1].number), default=math.inf)
    return [step for step in record.steps[len(way) :] if step.number < until]


def seed_of(record: Record) -> int | None:
    """The seed of the first reset."""
    given: int | None = None
    for call in record.calls:
        if call.op.method == "seed":
            given = call.op.args[0]
        elif call.op.method == "reset":
            given = call.op.kwargs.get("seed", given)
            break
    return given


def seed_before(record: Record, reset: Call) -> int | None:
    """The seed of a reset, or None."""
    place = reset.number - record.begin
    before = record.calls[place - 1].op if place else None
    given = before.args[0] if before is not None and before.method == "seed" else None
    seed: int | None = reset.op.kwargs.get("seed", given)
    return seed


def made_again(steps: list[Call]) -> Iterator[Op]:
    """Steps with the same actions, also where these were drawn."""
    for step in steps:
        yield Op("step", (step.copies["actions"],))


def _from_the_seed(record: Record, steps: list[Call]) -> Iterator[Op]:
    yield from opening(record.subject, seed_of(record))
    yield from made_again(steps)


def after_another_episode(record: Record, twin: Record) -> Iterator[Op]:
    """The way to the first end, by an instance that has come to another end before."""
    way, seed = first_end(record), seed_of(record)
    if seed is None:
        return
    yield from opening(record.subject, seed + record.num_envs)
    for op in (op for _ in range(_TURNS) for op in made_again(way)):
        yield op
        if twin.calls[-1].flags.any():
            break
    yield from _from_the_seed(record, way)


def reset_before_the_end(record: Record, twin: Record) -> Iterator[Op]:
    """The way to the first end, and a reset in the place of the last step."""
    yield from _from_the_seed(record, first_end(record)[:-1])
    yield Op("reset")


def resets_before_the_end(record: Record, twin: Record) -> Iterator[Op]:
    """A reset right after that under the seed; and again, with all steps but the last between."""
    yield from _from_the_seed(record, [])
    yield Op("reset")
    yield from reset_before_the_end(record, twin)


def reset_and_on_before_the_end(record: Record, twin: Record) -> Iterator[Op]:
    """The way to the first end, a reset in the place of the last step, and the steps after it."""
    yield from _reset_and_on(record, twin, 1)


def reset_and_on_midway(record: Record, twin: Record) -> Iterator[Op]:
    """The same with a reset in the place of the second half of the way, two steps at least."""
    yield from _reset_and_on(record, twin, max(2, len(first_end(record)) // 2))


def _reset_and_on(record: Record, twin: Record, early: int) -> Iterator[Op]:
    yield from _from_the_seed(record, first_end(record)[:-early])
    yield Op("reset")
    # In NEXT_STEP mode the first step after an end is the reset.
    for op in made_again(after_first_end(record)[int(record.mode == "NextStep") :]):
        yield op
        if twin.calls[-1].flags.any():
            return


def reset_after_the_end(record: Record, twin: Record) -> Iterator[Op]:
    """The way to the first end, a reset of all rows, and the steps after the one that resets."""
    way = first_end(record)
    yield from _from_the_seed(record, way)
    yield Op("reset")
    yield from made_again(after_first_end(record)[1:])


def stepping_on(record: Record, twin: Record) -> Iterator[Op]:
    """The way to the first end, and a step without the reset that is due in DISABLED mode."""
    way = first_end(record)
    yield from _from_the_seed(record, [*way, way[-1]])


def other_action_in_the_reset_step(record: Record, twin: Record) -> Iterator[Op]:
    """The way to the first end and on; rows that ended get other actions in the step after it."""
    yield from _with_other_actions_after_the_end(record, first_end(record)[-1].ended)


def other_action_beside_the_reset(record: Record, twin: Record) -> Iterator[Op]:
    """The same, but with another action in the first row that goes on."""
    yield from _with_other_actions_after_the_end(record, record.running(first_end(record)[-1])[:1])


def _with_other_actions_after_the_end(record: Record, rows: Sequence[int]) -> Iterator[Op]:
    yield from _from_the_seed(record, first_end(record))
    first, *later = after_first_end(record)
    actions = first.copies["actions"]
    for i in rows:
        actions = with_another_action(record, i, actions)
    yield Op("step", (actions,))
    yield from made_again(later)


def other_actions_in_a_row(record: Record, twin: Record) -> Iterator[Op]:
    """Other actions in one row."""
    yield from _other_actions(record, twin, changed_row(record))


def other_actions_in_the_first_row(record: Record, twin: Record) -> Iterator[Op]:
    """Other actions in row 0."""
    yield from _other_actions(record, twin, 0)


def other_actions_in_the_last_row(record: Record, twin: Record) -> Iterator[Op]:
    """Other actions in the last row."""
    yield from _other_actions(record, twin, record.num_envs - 1)


def _other_actions(record: Record, twin: Record, i: int) -> Iterator[Op]:
    others = np.arange(record.num_envs) != i
    change = partial(with_another_action, record, i)
    yield from _changed(record, twin, change, lambda mask: mask & others)


def shifted_by_a_row(record: Record, twin: Record) -> Iterator[Op]:
    """Each row has the actions of the next one, and its seed."""
    change = partial(_shifted, record)
    yield from _changed(record, twin, change, lambda mask: np.roll(mask, -1), later=1)


def _shifted(record: Record, actions: Any) -> Any:
    first, *others = _actions_of(record, actions)
    return batch(record.subject, [*others, first])


def _changed(
    record: Record,
    twin: Record,
    change: Callable[[Any], Any],
    other_mask: Callable[[Any], Any],
    later: int = 0,
) -> Iterator[Op]:
    """Other actions and seeds; in DISABLED mode the ends are other ones, too."""
    for call in record.calls:
        op, mask = call.op, call.mask
        if mask is not None or op.method == "step":
            due = np.isin(np.arange(twin.num_envs), due_rows(twin))
            due = due if mask is None else due | other_mask(mask)
            if due.any():
                yield Op("reset", kwargs={"options": {"reset_mask": due}})
        if op.method == "step":
            yield Op("step", (change(call.copies["actions"]),))
        elif op.method == "seed":
            yield Op("seed", (op.args[0] + later,))
        elif op.kwargs.get("seed") is not None:
            yield Op(op.method, op.args, {**op.kwargs, "seed": op.kwargs["seed"] + later})
        elif mask is None:
            yield op


def changed_row(record: Record) -> int:
    """The row that gets other actions: by the seed, so that each has its turn."""
    return (seed_of(record) or 0) % record.num_envs


def with_another_action(record: Record, i: int, actions: Any) -> Any:
    """A batch of actions with another one in row i, if there is one."""
    rows = _actions_of(record, actions)
    others = [a for a in record.subject.actions if not PRELUDE["equal"](a, rows[i])]
    return batch(record.subject, [*rows[:i], others[0], *rows[i + 1 :]]) if others else actions


def _actions_of(record: Record, actions: Any) -> list[Any]:
    """The action of each row."""
    return [action_of(record, actions, i) for i in range(record.num_envs)]


def action_of(record: Record, actions: Any, i: int) -> Any:
    """The action of row i."""
    if record.family == "vec_env":
        return actions[i]
    return PRELUDE["part"](record.subject.action_space, actions, i)
