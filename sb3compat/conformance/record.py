"""A program that was run once, with all arguments and results, which checks judge afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from sb3compat.conformance.findings import Family
from sb3compat.conformance.program.script import PRELUDE, to_source
from sb3compat.conformance.subject.subject import Subject
from sb3compat.conformance.values import Value
from sb3compat.errors import nearest

# The call that writes into the results of the call before it; no method of an environment.
OVERWRITE = "overwrite"
# The call that moves the global random generators, as other code in the process does.
DRAW_ELSEWHERE = "draw_elsewhere"

# The attributes of the environment that checks ask for; read once, after it was made.
_ATTRIBUTES = (
    "num_envs", "observation_space", "action_space", "single_observation_space",
    "single_action_space", "metadata",
)  # fmt: skip

# Methods whose effects a seed and a reset undo, or that have none. Attributes that checks set are
# ones that the environment does not know.
_HARMLESS = {
    "reset", "seed", "step", "action_space.seed", "single_action_space.seed", "call",
    "env_is_wrapped", "env_method", "get_attr", "get_images", "has_attr", "learn", "render",
    "set_attr", "set_options", "step_async", "step_wait",
}  # fmt: skip

# The numbers of the calls of other records begin this far apart.
_APART = 1_000_000

# For this many calls, results are compared with their copies.
WATCHED = 4


@dataclass(frozen=True)
class Drawn:
    """An argument that each call draws again, as the expression that draws it.

    Attributes:
        source: The expression, over `env` and the helpers of scripts.
    """

    source: str

    def __repr__(self) -> str:
        return self.source


@dataclass(frozen=True)
class Given:
    """An argument that a call gets as it is, and not as a copy.

    Attributes:
        source: The expression for it.
        value: The object.
    """

    source: str
    value: Any

    def __repr__(self) -> str:
        return self.source


Kind = Literal["method", "attribute", "function"]


@dataclass(frozen=True)
class Op:
    """One call of a program.

    Attributes:
        method: The method of the environment, or of a part of it, with dots between.
        args: Its arguments.
        kwargs: Its arguments by name.
        kind: Whether it is one: an attribute may be read, or a helper of scripts called.
    """

    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "method"

    def source(self, env: str = "env") -> str:
        """The call as source, on the environment of this name."""
        if self.kind == "attribute":
            return f"{env}.{self.method}"
        called = self.method if self.kind == "function" else f"{env}.{self.method}"
        return f"{called}({self._given})"

    @cached_property
    def _given(self) -> str:
        """The arguments as source."""
        given = [*map(to_source, self.args)]
        given += [f"{name}={to_source(value)}" for name, value in self.kwargs.items()]
        return ", ".join(given)


class Call:
    """One call of a record, and what it returned.

    Attributes:
        number: Its place in the script.
        op: The call.
        env: What a script calls the environment, and with what the names of its results begin.
        names: The names that a script gives the results; the single name `result` if they are of
            another number than the contract says, or if nobody looks at them.
        live: The results.
        copies: Copies of the results, made when the call returned.
        step: The number of steps up to here.
        changed: For each result that is no longer as it was returned, the call that changed it.
        is_caught: Whether it may raise.
    """

    def __init__(
        self, number: int, op: Op, env: str, step: int, *, is_caught: bool = False
    ) -> None:
        self.number, self.op, self.env, self.step = number, op, env, step
        self.is_caught = is_caught
        self.changed: dict[str, int] = {}
        self.names: tuple[str, ...] = ()
        self.result: Any = None
        self.live: dict[str, Any] = {}
        self.copies: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Value:
        copies = self.__dict__.get("copies", {})
        if name in copies:
            return Value(self.number, self.name_of(name), copies[name], self.live[name])
        method = self.__dict__["op"].method if "op" in self.__dict__ else "a call"
        has = ", ".join(copies) or "nothing"
        raise AttributeError(
            f"Expected a result of {method} ({has}), got {name!r}.{nearest(name, copies)}"
        )

    def name_of(self, result: str) -> str:
        """What a script calls a result."""
        if result == "reset_infos":
            return f"{self.env}.reset_infos"
        if result == "result" and self.op.method in ("get_images", "render"):
            result = "frames"
        return result if self.env == "env" else f"{self.env}_{result}"

    @property
    def whole(self) -> Value:
        """All that it returned."""
        copy = self.copies.get("result", self.result)
        return Value(self.number, self.name_of("result"), copy, self.result)

    @property
    def asked(self) -> Value:
        """All that it returned; the assertion of a script asks for it once more."""
        return Value(-1, self.op.source(self.env), self.result, self.result)

    @property
    def failure(self) -> BaseException | None:
        """What it has raised, if it may raise."""
        found: BaseException | None = self.copies.get("error")
        return found

    @property
    def mask(self) -> Any:
        """The mask of a reset of some rows, an array of bool; None for a reset of all rows."""
        options = self.op.kwargs.get("options")
        return options.get("reset_mask") if isinstance(options, dict) else None

    @property
    def is_step(self) -> bool:
        """Whether it returned the results of a step."""
        return self.op.method in ("step", "step_wait")

    @property
    def complete(self) -> bool:
        """Whether it returned as many results as the contract says."""
        return "result" not in self.names

    @cached_property
    def flags(self) -> np.ndarray[Any, Any]:
        """Which rows have ended, of a step; of none if the flags are malformed."""
        names = ("dones", "dones") if "dones" in self.copies else ("terminations", "truncations")
        with suppress(Exception):  # a check reports it
            found: np.ndarray[Any, Any] = PRELUDE["ended"](*(self.copies[name] for name in names))
            return found
        return np.zeros(0, bool)

    @cached_property
    def ended(self) -> list[int]:
        """The rows that ended in this step."""
        return [int(i) for i in np.flatnonzero(self.flags)]


class Record:
    """The calls of a program on one environment.

    Args:
        subject: The environment.
        name: What a script calls it.
        begin: The number of the first call.
        row: The row whose single environment this is of; None for the environment itself.

    Attributes:
        subject: The environment.
        family: Its interface.
        made: The statement that makes it.
        num_envs: The number of its rows.
        mode: The value of its autoreset mode, for a `VectorEnv`.
        calls: The calls that returned.
        error: The exception that ended the record, or None.
        failed_op: The call that raised it.
        trace: Its traceback.
        missing: What a check could not test on this record, and what to pass to test it.
        judged: Whether a check has found its situation in the record, and nothing to demand.
        used: Whether other programs have used the instance before.
        failed_in: The number of the call of the factory that raised, after others that did not.
        lead: Makes the calls of another record, on a new environment.
        others: The other records that were made so far, by key.
        memo: Results of checks' tools on the complete record, by the name of the tool.
    """

    def __init__(
        self, subject: Subject, name: str = "env", begin: int = 0, row: int | None = None
    ) -> None:
        self.subject, self.name, self.begin = subject, name, begin
        self.num_envs, self.mode = subject.num_envs, subject.mode
        self.family: Family | Literal["single"] = subject.family if row is None else "single"
        made = "make_env()" if row is None else f"reference[{row}]()"
        self.made = f"{name} = {made}"
        self.calls: list[Call] = []
        self.error: BaseException | None = None
        self.failed_op: Op | None = None
        self.trace = ""
        self.missing = ""
        self.judged = False
        self.used = False
        self.failed_in = 0
        self.row = row
        self.lead: Callable[[Record, Iterable[Op]], Record] | None = None
        self.others: dict[object, Record] = {}
        self.memo: dict[str, Any] = {}
        self._attributes: dict[str, Any] = {}

    @property
    def rows(self) -> range:
        """The numbers of the rows."""
        return range(self.num_envs)

    @property
    def resets(self) -> list[Call]:
        """The resets, with what they returned."""
        return [call for call in self.calls if call.op.method == "reset"]

    @property
    def all_steps(self) -> list[Call]:
        """The steps, whatever they returned."""
        return [call for call in self.calls if call.is_step]

    @property
    def steps(self) -> list[Call]:
        """The steps that returned as many results as the contract says."""
        return [step for step in self.all_steps if step.complete]

    @property
    def batches(self) -> list[Call]:
        """The resets and steps that returned observations."""
        return [call for call in self.calls if "obs" in call.copies]

    @property
    def endings(self) -> list[Call]:
        """The steps in which a row ended."""
        return [step for step in self.steps if step.flags.any()]

    @property
    def through_endings(self) -> list[Call]:
        """The steps, if a row ended in one of them."""
        return self.steps if self.endings else []

    @property
    def pairs(self) -> Iterator[tuple[Call, Call]]:
        """Each step with the reset or step before it."""
        batches = self.batches
        return ((a, b) for a, b in pairwise(batches) if b.is_step)

    @property
    def reset_steps(self) -> Iterator[tuple[Call, int]]:
        """The steps of NEXT_STEP mode that reset a row instead of stepping it, with the row."""
        for before, step in self.pairs:
            for i in before.ended if before.is_step else ():
                yield step, i

    def changed_by(self, call: Call, name: str) -> str:
        """The method whose call has changed a result of an earlier one; empty if none has."""
        number = call.changed.get(name)
        return "" if number is None else self.calls[number - self.begin].op.method

    def follows(self, call: Call, method: str) -> bool:
        """Whether a call of this method comes after a call, soon enough to be watched."""
        place = call.number - self.begin + 1
        later = self.calls[place : place + WATCHED]
        return any(other.op.method == method for other in later)

    @property
    def made_ops(self) -> tuple[Op, ...]:
        """The calls of the program that returned."""
        return tuple(call.op for call in self.calls)

    @property
    def ops(self) -> tuple[Op, ...]:
        """The calls of the program, with the one that raised."""
        return self.made_ops if self.failed_op is None else (*self.made_ops, self.failed_op)

    @property
    def settled(self) -> bool:
        """Whether the program leaves nothing behind that a seed and a reset do not undo."""
        methods = [call.op.method for call in self.calls]
        seeds = [k for k, method in enumerate(methods) if method == "seed"]
        return (
            self.error is None
            and {call.op.method for call in self.calls if call.op.kind == "method"} <= _HARMLESS
            and {call.op.method for call in self.calls if call.op.kind == "function"}
            <= {DRAW_ELSEWHERE}
            and methods.count("step_async") == methods.count("step_wait")
            and not (seeds and "reset" not in methods[seeds[-1] :])
        )

    def running(self, step: Call) -> list[int]:
        """The rows that did not end in a step."""
        return [i for i in self.rows if i not in step.ended]

    def attribute(self, name: str) -> Value:
        """An attribute of the environment."""
        value = self._attributes[name]
        return Value(-1, f"{self.name}.{name}", value, value)

    def other(
        self, key: object, ops: Callable[[Record], Iterable[Op]], name: str, row: int | None = None
    ) -> Record:
        """Another record to compare this one with; made once for each key.

        Args:
            key: Identifies it.
            ops: Its calls, given the results so far.
            name: What a script calls its environment.
            row: The row whose single environment it is of; None for the environment itself.
        """
        if key not in self.others:
            assert self.lead is not None, "it was made by hand"
            other = Record(self.subject, name, _APART * (1 + len(self.others)), row)
            self.others[key] = self.lead(other, ops(other))
        return self.others[key]

    def partly(self, missing: str) -> None:
        """Note that a check can test only a part, and what to pass to test the rest."""
        self.missing = self.missing or missing

    def look_at(self, env: Any) -> None:
        """Store the attributes."""
        for name in _ATTRIBUTES:
            try:
                self._attributes[name] = getattr(env, name)
            except Exception:  # noqa: PERF203  (a check of attributes reports it)
                self._attributes[name] = None
