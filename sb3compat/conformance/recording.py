"""Run a program, and fill its record.

The environment is called directly. The statements that a script would have for the same calls are
made from the calls when they are needed: for the journal, and for the reproduction of a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from operator import attrgetter
from typing import Any, Literal

import numpy as np

from sb3compat.conformance.findings import CheckError, Family, said_by
from sb3compat.conformance.program.script import PRELUDE, to_source
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.record import OVERWRITE, WATCHED, Call, Drawn, Given, Op, Record
from sb3compat.conformance.values import Value
from sb3compat.errors import shown

# What a call returns, by the interface and the method.
RESULTS: Mapping[tuple[Family | Literal["single"], str], tuple[str, ...]] = {
    ("vec_env", "reset"): ("obs",),
    ("vec_env", "step"): ("obs", "rewards", "dones", "infos"),
    ("vec_env", "step_wait"): ("obs", "rewards", "dones", "infos"),
    ("vector_env", "reset"): ("obs", "infos"),
    ("vector_env", "step"): ("obs", "rewards", "terminations", "truncations", "infos"),
    ("single", "reset"): ("obs", "info"),
    ("single", "step"): ("obs", "reward", "terminated", "truncated", "info"),
}

equal, snapshot = map(PRELUDE.__getitem__, ("equal", "snapshot"))


def recorded(
    record: Record,
    env: Any,
    ops: Iterable[Op],
    before_call: Callable[[str], None] = lambda text: None,
) -> Record:
    """Make the calls of a program, up to its end or to an exception.

    Args:
        record: The record to fill.
        env: The environment, new or as a reset leaves it.
        ops: The calls. They may be made one by one, from what the record has so far.
        before_call: Called with the source of each call.
    """
    record.look_at(env)
    steps = 0
    for op in ops:
        steps += op.method in ("step", "step_async")
        call = Call(record.begin + len(record.calls), op, record.name, steps)
        before_call(announced(record.family, call, record.calls))
        try:
            make(record, env, call)
        except (Exception, SystemExit) as error:
            record.error, record.failed_op, record.trace = error, op, trace_of(error, last=12)
            break
        record.calls.append(call)
        for earlier in record.calls[-1 - WATCHED : -1]:
            _look_again(earlier, call.number)
        if not call.complete and op.method in ("reset", "step"):
            break
    for earlier in record.calls[: -1 - WATCHED]:
        _look_again(earlier, record.calls[-1].number)
    return record


def announced(family: Family | Literal["single"], call: Call, before: Sequence[Call]) -> str:
    """The statement of a call whose results are not known yet."""
    names = [call.name_of(name) for name in RESULTS.get((family, call.op.method), ())]
    return " = ".join([*([", ".join(names)] if names else []), source_of(call, before)])


def make(record: Record, env: Any, call: Call) -> None:
    """Make a call, and take down what it returns."""
    op = call.op
    args, kwargs = arguments(op, env)
    actions = snapshot(args[0]) if op.method == "step" else None
    if op.method == OVERWRITE:
        PRELUDE[OVERWRITE]([record.calls[-1].live[name] for name in _given(record.calls)])
    elif op.kind == "attribute":
        call.result = attrgetter(op.method)(env)
        call.live, call.copies = {"result": call.result}, {"result": snapshot(call.result)}
    else:
        function = PRELUDE[op.method] if op.kind == "function" else attrgetter(op.method)(env)
        call.result = function(*args, **kwargs)
    _take_down(record, call, env)
    if op.method == "step":
        call.live["actions"], call.copies["actions"] = args[0], actions


def arguments(op: Op, env: Any) -> tuple[list[Any], dict[str, Any]]:
    """Copies of the arguments of a call, which the program cannot change."""
    names = {"env": env, "np": np, "partial": partial, **PRELUDE}

    def own(argument: Any) -> Any:
        if isinstance(argument, Given):
            return argument.value
        return eval(argument.source, names) if isinstance(argument, Drawn) else deepcopy(argument)

    return [own(a) for a in op.args], {name: own(a) for name, a in op.kwargs.items()}


def writable(argument: Any) -> Any:
    """An argument as a call takes it; a part of what another call returned as what it is.

    Raises:
        CheckError: If no script can write it down.
    """
    found = argument.value if isinstance(argument, Value) else argument
    if isinstance(found, str | int | float | np.ndarray | Sequence | Mapping | Given | Drawn):
        return found
    try:
        compile(to_source(found), "<argument>", "eval")
    except SyntaxError:
        raise CheckError(
            "Expected arguments that a script can write down, such as numbers, texts, arrays and "
            f"dicts of them, got {shown(found)} ({type(found).__name__}). Take a class or a "
            "function from scene.imported(module, name), and an object from scene.made_by."
        ) from None
    return found


def _given(calls: Sequence[Call]) -> tuple[str, ...]:
    """The results of the last call, all of which a caller may write into."""
    return tuple(name for name in calls[-1].names if name != "result")


def source_of(call: Call, before: Sequence[Call]) -> str:
    """The source of a call, by the calls before it."""
    if call.op.method == OVERWRITE:
        names = ", ".join(before[-1].name_of(name) for name in _given(before))
        return f"{OVERWRITE}(({names},))"
    return call.op.source(call.env)


def _look_again(call: Call, number: int) -> None:
    """Record which results of a call have changed after a later call."""
    for name, copy in call.copies.items():
        if name not in call.changed and not equal(call.live[name], copy):
            call.changed[name] = number


def _take_down(record: Record, call: Call, env: Any) -> None:
    names = RESULTS.get((record.family, call.op.method))
    results = (call.result,) if names is not None and len(names) == 1 else call.result
    if names is None or not isinstance(results, tuple | list) or len(results) != len(names):
        call.names = ("result",)
        return
    call.names = names
    call.live = dict(zip(names, results, strict=True))
    call.copies = {name: snapshot(value) for name, value in call.live.items()}
    if record.family == "vec_env":
        infos = getattr(env, "reset_infos", None)
        call.live["reset_infos"], call.copies["reset_infos"] = infos, snapshot(infos)


def raised(record: Record) -> str:
    """The call that raised, and its exception, in words."""
    assert record.error is not None
    call = "make_env()" if record.failed_op is None else record.failed_op.source(record.name)
    return f"{call} raised {said_by(record.error)}"
