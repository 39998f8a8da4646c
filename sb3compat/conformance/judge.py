"""Clauses of the contract, judged on records.

A clause is a function of a record that yields what has to hold, one demand after the other. A
demand is one condition: it is evaluated on the values of the record, and it is the assertion of the
script that reproduces a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from traceback import extract_tb
from typing import Any

import numpy as np

from sb3compat.conformance.findings import (
    CheckError,
    MalformedError,
    NotExercisedError,
    cut,
    said_by,
    short,
)
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.journal import journal
from sb3compat.conformance.program.perturb import perturb
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.programs import Draws, episodes, opening, program
from sb3compat.conformance.record import Op, Record
from sb3compat.conformance.recording import recorded
from sb3compat.conformance.subject.pace import long_programs_of, makes_of
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject
from sb3compat.conformance.values import Value
from sb3compat.errors import shown


@dataclass(frozen=True)
class Demand:
    """A condition that must be true.

    Attributes:
        condition: An expression with `{0}`, `{1}` and so on in the place of values.
        values: The values, the one that the message names first.
        words: What was expected, in words.
        row: The row concerned.
        what: The expression that the message names, with the same places.
        bounds: Whether only bounds are wrong if it does not hold.
        like: The value that was expected; None if the words say it.
    """

    condition: str
    values: tuple[Value, ...]
    words: str
    row: int | None = None
    what: str = "{0}"
    bounds: bool = False
    like: Value | None = None

    @property
    def should(self) -> str:
        """What was expected."""
        # A message only: most demands hold, and to write a value down takes longer than to judge.
        if self.like is None:
            return self.words
        expected = short(self.like.value, 80)
        if expected.endswith("…"):
            with suppress(Exception):  # `got` tells
                expected += difference(self._evaluate(self.what), self.like.value)
        return f"{expected}, {self.words}"

    def holds(self) -> bool:
        """Whether the condition holds. An exception counts as no."""
        try:
            return bool(self._evaluate(self.condition))
        except (Exception, SystemExit) as error:
            frames = extract_tb(error.__traceback__)
            if isinstance(error, NameError) and frames[-1].filename == _CONDITION:
                raise CheckError(
                    f"Expected a condition of {{0}} and so on, Python and np, got "
                    f"{self.condition!r}: {error}. Write what the check knows into it: "
                    "f'{{0}} <= {bound}'."
                ) from error
            return False

    def _evaluate(self, template: str) -> Any:
        return compiled(template, len(self.values))(*(value.judged for value in self.values))

    @property
    def because(self) -> str:
        """The exception of the condition, in words; empty if it has a value."""
        try:
            bool(self._evaluate(self.condition))
        except (Exception, SystemExit) as error:
            return f" ({said_by(error)})"
        return ""

    @property
    def got(self) -> str:
        """The value that the message names."""
        try:
            return short(self._evaluate(self.what))
        except (Exception, SystemExit) as error:
            return f"<{said_by(error)}>"


def difference(got: Any, expected: Any) -> str:
    """Where two values differ, and how, for a text that is cut; empty if nothing tells."""
    places: list[Any] = []
    with suppress(Exception):  # they may be anything
        while isinstance(expected, dict | list | tuple):
            keys = expected if isinstance(expected, dict) else range(len(expected))
            places.append(next(key for key in keys if not _equal(got[key], expected[key])))
            got, expected = got[places[-1]], expected[places[-1]]
        a, b = np.asarray(got), np.asarray(expected)
        unequal = (a != b) & ((a == a) | (b == b))
        if a.shape == b.shape and (places or a.shape):
            far = unequal & ~np.isclose(a, b) if a.dtype.kind == b.dtype.kind == "f" else unequal
            at = tuple(np.argwhere(far if far.any() else unequal)[0].tolist())
            one, other = (cut(str(array[at]), _PART) for array in (a, b))
            return f" (at {[*places, *at]}: {one}, not {other})"
    return ""


@lru_cache(4096)
def compiled(template: str, places: int) -> Callable[..., Any]:
    """An expression as a function of the values in its places."""
    names = [f"_{k}" for k in range(places)]
    source = f"lambda {', '.join(names)}: ({template.format(*names)})"
    function: Callable[..., Any] = eval(compile(source, _CONDITION, "eval"), _NAMES)
    return function


def expect(
    condition: str,
    *values: Value,
    should: str,
    row: int | None = None,
    what: str = "{0}",
    bounds: bool = False,
    like: Value | None = None,
) -> Demand:
    """A condition on values of a record; a check yields it.

    Args:
        condition: An expression with `{0}`, `{1}` and so on in the place of the values. It may use
            `np` (NumPy).
        values: Parts of what calls have returned, such as `step.infos[0]`.
        should: What was expected, in words, for the message.
        row: The row concerned, or None.
        what: The expression that the message shows, with the same places.
        bounds: Whether only bounds of a space are wrong if it does not hold.
        like: The value that was expected, which the message shows before `should`.

    Returns:
        The demand, which the kit evaluates.

    Raises:
        CheckError: If it could not be evaluated, whatever the environment does. A `ValueError`.

    Example::

        expect("{0}.dtype == np.float32", step.rewards, what="{0}.dtype", should="float32")
    """
    for value in values:
        if not isinstance(value, Value):
            raise CheckError(
                f"Expected the values of expect({condition!r}, …) to be parts of what calls "
                f"returned, such as step.rewards or env.attribute('num_envs'), got {shown(value)} "
                f"({type(value).__name__}). Leave `.value` out here; write what the check itself "
                "knows into the condition: f'{{0}} == {number}'."
            )
    try:
        for template in (condition, what):
            compiled(template, len(values))
    except (SyntaxError, LookupError, ValueError, AttributeError) as error:
        raise CheckError(
            f"Expected expressions with a place for each of {len(values)} values, {{0}} and so on, "
            f"got {condition!r}, of which {what!r} is shown ({said_by(error)}). Correct it; other "
            "braces are written twice: {{ and }}."
        ) from error
    return Demand(condition, values, should, row, what, bounds, like)


# The file name in tracebacks of conditions.
_CONDITION = "<condition>"
_NAMES = {"np": np, **PRELUDE}
_equal = PRELUDE["equal"]
# So much is shown of a part.
_PART = 40

# A clause judges one record; a comparison judges it together with a variant of it.
Clause = Callable[..., Iterator[Demand]]
Variant = Callable[[Record, Record], Iterable[Op]]


@dataclass(frozen=True)
class Verdict:
    """What a clause says of one record.

    Attributes:
        broken: The first demand that does not hold, or None.
        exercised: Whether there was a demand at all.
        reason: Why there was none.
        missing: What could not be told, and what would help.
        mistake: An exception of the clause itself.
    """

    broken: Demand | None = None
    exercised: bool = False
    reason: str = ""
    missing: str = ""
    mistake: BaseException | None = None


def demands(returned: object, function: Callable[..., Any]) -> Iterator[Demand]:
    """What a check demands, as it goes on.

    A check of others also demands each key that it reads, or a result without the key would pass.
    For the kit's own checks, those of structures report it.

    Args:
        returned: What its function returned.
        function: The function.

    Raises:
        CheckError: If that is nothing to go through, or has something else in it.
    """
    if not isinstance(returned, Iterable):
        raise CheckError(
            f"Expected a check that yields what expect(…) returns, but the function returned "
            f"{shown(returned)}. Write `yield` before each expect(…)."
        )
    try:
        for demand in returned:
            if not isinstance(demand, Demand):
                raise CheckError(
                    f"Expected a check that yields what expect(…) returns, but it yielded "
                    f"{shown(demand)} ({type(demand).__name__}). Write `yield expect(…)`."
                )
            yield demand
    except MalformedError as error:
        if error.key is None or function.__module__.startswith("sb3compat."):
            raise
        key = repr(error.key).replace("{", "{{").replace("}", "}}")
        condition = f"caught(lambda: {{0}}[{key}]) is None"
        yield expect(condition, error.whole, should=f"with [{error.key!r}], which the check reads")


def verdict(clause: Clause, *records: Record) -> Verdict:
    """Judge a record by one clause, or a record and its variant by a comparison.

    A clause may raise `NotExercisedError` at its end: it tells why it has demanded nothing.
    """
    records[0].missing, records[0].judged = "", False
    exercised = False
    try:
        for demand in demands(clause(*records), clause):
            exercised = True
            if not demand.holds():
                return Verdict(demand, True, missing=records[0].missing)
    except NotExercisedError as error:
        exercised = exercised or records[0].judged
        return Verdict(exercised=exercised, reason=str(error), missing=records[0].missing)
    except (Exception, SystemExit) as error:
        return Verdict(mistake=error)
    return Verdict(exercised=exercised or records[0].judged, missing=records[0].missing)


def twin_of(record: Record, variant: Variant) -> Record:
    """The record of a variant of a program, on another instance."""
    return record.other(variant, partial(variant, record), "twin")


class Records:
    """The records of an environment, made once for all clauses.

    Args:
        subject: The environment.
        instances: Those of the process.
    """

    def __init__(self, subject: Subject, instances: Instances) -> None:
        self._subject, self._instances = subject, instances
        self._known: dict[tuple[int, int, Draws], list[Record]] = {}
        self._new = False

    def of(self, settings: Settings, variant: Variant | None = None) -> list[tuple[Record, ...]]:
        """The records of the programs; of the short ones with their variants, if one is asked."""
        short = self._made(settings, settings.programs, program)
        if variant is not None:
            return list(self._with_twins(short, variant))
        long = self._made(settings, long_programs_of(self._subject), episodes)
        return [(record,) for record in (*short, *long)]

    def _with_twins(self, records: list[Record], variant: Variant) -> Iterator[tuple[Record, ...]]:
        """Records with their variants; few where each needs an instance that takes long to make."""
        made = 0
        for record in records:
            twin = twin_of(record, variant)
            yield record, twin
            made += not twin.used
            if made >= makes_of(self._subject):
                return

    def resets(self, settings: Settings) -> list[tuple[Record, ...]]:
        """A record of two resets, without a step."""
        seed = 0 if self._subject.capabilities.get("seeding") else None
        ops = (*opening(self._subject, seed), *opening(self._subject, None))
        return [(self._fill(Record(self._subject), settings, lambda *_: ops, new=self._new),)]

    def again(
        self, settings: Settings, ops: tuple[Op, ...], variant: Variant | None
    ) -> tuple[Record, ...]:
        """Records of a program, and of its variant if one is asked, on new instances."""
        record = self._fill(Record(self._subject), settings, lambda *_: ops, new=True)
        if variant is None:
            return (record,)
        return record, twin_of(record, variant)

    def renew(self) -> bool:
        """Forget all records, and make new ones on new instances; whether that is another thing."""
        if self._new or not self._instances.shared:
            return False
        self._new = True
        self._known.clear()
        self._instances.close()
        return True

    def _made(self, settings: Settings, programs: int, draws: Draws) -> list[Record]:
        key = (settings.seed, programs, draws)
        if key in self._known:
            return self._known[key]
        found = self._known[key] = []
        deadline = time.perf_counter() + settings.seconds
        for number in range(programs):
            draw = Random(1_000_003 * settings.seed + number)
            ops = partial(draws, self._subject, number, draw)
            found.append(self._fill(Record(self._subject), settings, ops, new=self._new))
            if number and time.perf_counter() > deadline:
                break
        return found

    def _fill(
        self,
        record: Record,
        settings: Settings,
        ops: Callable[[Record, Any], Iterable[Op]],
        *,
        new: bool,
    ) -> Record:
        """Run a program, on a new instance or on one that the programs share."""
        record.lead = partial(self._lead, settings, new)
        with journal(settings.journal) as write:
            write(record.made)
            perturb(settings.seed)()
            try:
                env, record.used = self._instances.take(0, new=new)
            except (Exception, SystemExit) as error:
                record.error, record.trace = error, trace_of(error, last=12)
                if error is self._instances.failure:
                    record.failed_in, self._instances.excused = self._instances.failed_in, True
                return record
            try:
                recorded(record, env, ops(record, env), write)
            finally:
                keep = self._instances.shared and record.settled
                for one in self._instances.give_back([env], keep=keep):
                    write(f"{record.name}.close()")
                    self._instances.end(one)
        return record

    def _lead(self, settings: Settings, new: bool, other: Record, ops: Iterable[Op]) -> Record:
        """Make the calls of a record that another one is held against."""
        if other.row is None:
            return self._fill(other, settings, lambda *_: ops, new=new)
        with journal(settings.journal) as write:
            write(other.made)
            try:
                recorded(other, (self._instances.reference or ())[other.row](), ops, write)
            except (Exception, SystemExit) as error:
                other.error = error
            finally:
                self._instances.give_back([], keep=other.error is None)
        return other
