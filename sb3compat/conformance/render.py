"""The script of a demand that does not hold: the calls of the record, and the assertion."""

from __future__ import annotations

from sb3compat.conformance.findings import Finding
from sb3compat.conformance.judge import Demand
from sb3compat.conformance.program.script import to_source
from sb3compat.conformance.record import Call, Record, Value

# What a script calls a value of an earlier call, a copy of it or the object itself.
_COPY, _HELD = "before", "held"
# What it calls the actions as they were before a step.
_GIVEN = "given"


def lines_of(record: Record, demand: Demand) -> tuple[str, ...]:
    """The statements of a script that ends with the assertion.

    Args:
        record: The record, whose last call is the last that matters.
        demand: What does not hold.
    """
    names = _names(record, demand)
    lines = ["env = make_env()"]
    wanted = {(value.call, value.name) for value in demand.values}
    for call in record.calls:
        if (call.number, "actions") in wanted:
            lines += [f"{_GIVEN} = {to_source(call.op.args[0])}", f"actions = deepcopy({_GIVEN})"]
            lines.append(f"{', '.join(call.names)} = env.step(actions)")
            continue
        lines.append(statement(call, whole=(call.number, "result") in wanted))
        lines += [
            f"{name} = {value.name if value.is_held else f'snapshot({value.name})'}"
            for value, name in names
            if value.call == call.number and name != value.name
        ]
    return (*lines, _assertion(demand, [value.source(name) for value, name in names], record))


def statement(call: Call, *, whole: bool = False) -> str:
    """The statement of a call, with names for the results if the script looks at them."""
    names = ("result",) if whole else tuple(name for name in call.names if name != "result")
    return f"{', '.join(names)} = {call.op.source}" if names else call.op.source


def _names(record: Record, demand: Demand) -> list[tuple[Value, str]]:
    """The values, each with the name that the script has for the whole of it."""
    last = len(record.calls) - 1
    found: dict[tuple[int, str, bool], str] = {}
    for value in demand.values:
        key = (value.call, value.name, value.is_held)
        if value.name == "actions":
            found[key] = "actions" if value.is_held else _GIVEN
        elif value.call in (-1, last):
            found[key] = value.name
        elif key not in found:
            kind = _HELD if value.is_held else _COPY
            taken = sum(name.startswith(kind) for name in found.values())
            found[key] = f"{kind}_{taken + 1}" if taken else kind
    return [(value, found[value.call, value.name, value.is_held]) for value in demand.values]


def _assertion(demand: Demand, sources: list[str], record: Record) -> str:
    condition = demand.condition.format(*sources)
    message = message_of(finding_of(demand, sources, record), demand.because)
    if not demand.because:
        return f"assert {condition}, {message!r}"
    return (
        f"try:\n    assert {condition}\n"
        f"except Exception as error:\n    raise AssertionError({message!r}) from error"
    )


def finding_of(demand: Demand, sources: list[str], record: Record) -> Finding:
    """The broken demand in parts."""
    step = record.calls[-1].step if record.calls else 0
    what = demand.what.format(*sources)
    return Finding(what, demand.got, demand.should, step, demand.row, demand.bounds)


def message_of(finding: Finding, because: str = "") -> str:
    """The broken demand in one line."""
    return (
        f"{finding.what}={finding.got}, but should be {finding.should} [{finding.place}]{because}"
    )


def told(record: Record, demand: Demand) -> tuple[Finding, str]:
    """The broken demand in parts, and in one line."""
    sources = [value.source(name) for value, name in _names(record, demand)]
    finding = finding_of(demand, sources, record)
    return finding, message_of(finding, demand.because)
