"""Scenarios: checks that call an environment themselves, in plain Python.

A scenario is a function of a `Scene` that yields what has to hold, as a clause does. Each call of
its environments is written down, with what it returned: the script of a failure is made of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from sb3compat.conformance.findings import EnvFailureError, NotExercisedError
from sb3compat.conformance.program.draws import Draws
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.script import PRELUDE, to_source
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.programs import batch, due_rows, opening
from sb3compat.conformance.record import OVERWRITE, Call, Given, Op, Record
from sb3compat.conformance.recording import announced, arguments, make
from sb3compat.conformance.render import statements
from sb3compat.conformance.subject.subject import Ending, Subject
from sb3compat.conformance.values import Value

T = TypeVar("T")


class Scene:
    """What a scenario gets: facts about the environment, instances of it, and draws.

    Args:
        subject: The environment under test.
        instances: Those of the process.
        draws: What is drawn.
        before_make: Called before each construction.
        before_call: Called with the source of each call.
        new: Whether no other program may have used the instances.

    Attributes:
        subject: The environment under test.
        family: Its interface.
        n: The number of its rows.
        records: What the instances did, in the order of their construction.
        missing: What this run could not test, and what to pass to test it.
        judged: Whether the scenario has found its situation, and nothing to demand.
        used: Whether other programs have used one of the instances before.
    """

    def __init__(
        self,
        subject: Subject,
        instances: Instances,
        draws: Draws,
        before_make: Callable[[], None] = lambda: None,
        before_call: Callable[[str], None] = lambda text: None,
        *,
        new: bool = True,
    ) -> None:
        self.subject, self.family, self.n = subject, subject.family, subject.num_envs
        self.records: list[Record] = []
        self.missing = ""
        self.judged = self.used = False
        self._instances, self._draws, self._new = instances, draws, new
        self._before_make, self._before_call = before_make, before_call
        self._opened: list[tuple[Record, Any]] = []
        self._lent = False
        self._number = -1

    # Facts

    @property
    def rows(self) -> range:
        """The numbers of the rows."""
        return range(self.n)

    @property
    def disabled(self) -> bool:
        """Whether the caller resets the rows that ended."""
        return self.subject.mode == "Disabled"

    def partly(self, missing: str) -> None:
        """Note that a part of the contract is not tested, and what to pass to test it."""
        self.missing = self.missing or missing

    # Draws

    def choose(self, values: Sequence[T]) -> T:
        """One of these values; the first is the simplest."""
        return values[self._draws.number(len(values))]

    def seed(self) -> int:
        """A seed to reset with."""
        return self.choose(range(10))

    def some_rows(self) -> list[int]:
        """Some rows, at least one."""
        return [i for i in self.rows if self.choose((False, True))] or [self.n - 1]

    def shuffled(self) -> list[int]:
        """The rows, in any order."""
        left = list(self.rows)
        return [left.pop(self._draws.number(len(left))) for _ in self.rows]

    def actions(self) -> Any:
        """A batch of actions."""
        known = self.subject.actions
        chosen = [self.choose(known)] * self.n
        if self.choose((False, True)):
            chosen = [self.choose(known) for _ in self.rows]
        return batch(self.subject, chosen)

    def ending(self) -> Ending:
        """A way to the end of an episode.

        Raises:
            NotExercisedError: If none is known.
        """
        if not self.subject.endings:
            raise NotExercisedError("no episode ended")
        return self.choose(self.subject.endings)

    # Instances

    def make(self, name: str = "env") -> Recorded:
        """A new instance, with the name that it has in a script."""
        record = Record(self.subject, name, self._next())
        self._before_call(record.made)
        self._before_make()
        try:
            env, used = self._instances.take(len(self._opened), new=self._new)
        except NotExercisedError:
            raise
        except (Exception, SystemExit) as error:
            self.records.append(record)
            raise EnvFailureError(record.made, error, trace_of(error, last=12)) from error
        self.used |= used
        self.records.append(record)
        self._opened.append((record, env))
        record.look_at(env)
        return Recorded(self, record, env)

    def start(self) -> tuple[Recorded, Call]:
        """A new instance, and its reset, with a seed if it takes one."""
        env = self.make()
        seed = self.seed() if self.subject.capabilities.get("seeding") else None
        return env, env.restart(seed)

    def let(self, name: str, value: Any) -> Recorded:
        """An object of the caller, which may be passed to the environment."""
        record = Record(self.subject, name, self._next())
        record.made = f"{name} = {to_source(value)}"
        self._before_call(record.made)
        self.records.append(record)
        return Recorded(self, record, deepcopy(value))

    def imported(self, module: str, *names: str) -> list[Given]:
        """Names that a script imports from a module."""
        record = Record(self.subject, module, self._next())
        record.made = f"from {module} import {', '.join(names)}"
        self._before_call(record.made)
        self.records.append(record)
        found = __import__(module, fromlist=names)
        return [Given(name, getattr(found, name)) for name in names]

    def made_by(self, maker: Given, name: str, *args: Any, **kwargs: Any) -> tuple[Recorded, Value]:
        """What an imported name makes of an instance, and the exception that it raised, or None.

        Args:
            maker: The imported name.
            name: What a script calls the object.
            args: The arguments, instances among them.
            kwargs: The arguments by name.
        """
        record = Record(self.subject, name, self._next())
        given = {key: _given(value) for key, value in kwargs.items()}
        op = Op(maker.source, tuple(map(_given, args)), given, kind="function")
        record.made = f"{name} = {op.text}"
        self._before_call(record.made)
        self.records.append(record)
        self._lent = True
        live = error = None
        try:
            positional, named = arguments(op, None)
            live = maker.value(*positional, **named)
        except (Exception, SystemExit) as raised:
            error = raised
            record.made = f"error = caught(lambda: {op.text})"
        return Recorded(self, record, live), Value(-1, "error", error, error)

    def single(self, i: int) -> Recorded:
        """The single environment of a row."""
        record = Record(self.subject, f"single_{i}", self._next(), i)
        self._before_call(record.made)
        self.records.append(record)
        return Recorded(self, record, (self._instances.reference or ())[i]())

    def single_is_wrapped(self, wrapper: type) -> bool:
        """Whether there is such a wrapper around the first single environment."""
        single = (self._instances.reference or ())[0]()
        while hasattr(single, "env"):
            if type(single).__name__ == wrapper.__name__:
                return True
            single = single.env
        return False

    def caught(self, method: Method, *args: Any, **kwargs: Any) -> Call:
        """A call that may raise: its `error` is the exception, or None."""
        return method.called(args, kwargs, is_caught=True)

    def call(self, record: Record, env: Any, op: Op, *, is_caught: bool = False) -> Call:
        """Make a call of an instance, and take it down.

        Raises:
            EnvFailureError: If it raises, and is not meant to.
        """
        step = record.calls[-1].step if record.calls else 0
        step += op.method in ("step", "step_async")
        call = Call(self._next(), op, record.name, step, is_caught=is_caught)
        line = announced(record.family, call, record.calls)
        self._before_call(
            f"error = caught(lambda: {call.op.source(call.env)})" if is_caught else line
        )
        try:
            make(record, env, call)
        except (Exception, SystemExit) as error:
            if not (is_caught and isinstance(error, Exception)):
                record.error, record.failed_op = error, op
                raise EnvFailureError(line, error, trace_of(error, last=12)) from error
            call.names, call.live, call.copies = ("result",), {"error": error}, {"error": error}
        else:
            if is_caught:
                call.live["error"] = call.copies["error"] = None
        record.calls.append(call)
        if not is_caught and not call.complete and " = " in line:
            # The exception that unpacking raises in a script.
            kind = ValueError if isinstance(call.result, Iterable) else TypeError
            malformed = kind("it returned another number of results")
            call.names = tuple(line.partition(" = ")[0].split(", "))
            raise EnvFailureError(line, malformed, "")
        return call

    def _next(self) -> int:
        self._number += 1
        return self._number

    @property
    def lines(self) -> tuple[str, ...]:
        """The calls so far, as statements."""
        return tuple(statements(self.records))

    def forget(self, env: Recorded) -> None:
        """Leave an instance alone: closing it would hang, or something else closes it."""
        self._opened = [each for each in self._opened if each[0] is not env.record]

    def close(self, *, whole: bool) -> None:
        """Close the instances, or hand them on to the next program.

        Args:
            whole: Whether the scenario came to its end.
        """
        calm = all(
            record.settled and not any(call.is_caught for call in record.calls)
            for record, _ in self._opened
        )
        names = {id(env): record.name for record, env in self._opened}
        envs = [env for _, env in self._opened]
        keep = whole and calm and not self._lent and self._instances.shared
        for env in reversed(self._instances.give_back(envs, keep=keep)):
            self._before_call(f"{names[id(env)]}.close()")
            self._instances.end(env)
        self._opened = []


class Recorded:
    """An instance in a scenario: its methods are called as usual, and each returns a `Call`.

    Args:
        scene: The scene.
        record: What it did.
        live: The instance itself.
    """

    def __init__(self, scene: Scene, record: Record, live: Any) -> None:
        self.scene, self.record, self.live = scene, record, live

    def __getattr__(self, name: str) -> Method:
        return Method(self, name)

    def __repr__(self) -> str:
        return self.record.name

    @property
    def value(self) -> Value:
        """The object itself, as it is now."""
        return Value(-1, self.record.name, self.live, self.live)

    def overwrite(self) -> None:
        """Write into what the last call has returned."""
        self.scene.call(self.record, self.live, Op(OVERWRITE))

    def attribute(self, path: str) -> Value:
        """An attribute, which the assertion of a script asks for."""
        value = attrgetter(path)(self.live)
        return Value(-1, f"{self.record.name}.{path}", value, value)

    def read(self, path: str) -> Value:
        """An attribute as it is now, which later calls may change."""
        return self.scene.call(self.record, self.live, Op(path, kind="attribute")).whole

    def within(self, seconds: int, method: Method) -> Call:
        """Call a method that may hang: its `error` is the exception, None, or `"hung"`."""
        op = Op("within", (seconds, _given(method)), kind="function")
        call = self.scene.call(self.record, self.live, op)
        call.live["error"] = call.copies["error"] = call.result
        return call

    @property
    def last(self) -> Call:
        """The last call."""
        return self.record.calls[-1]

    # Of either interface

    def restart(self, seed: int | None = None) -> Call:
        """Reset all rows, with a seed unless it is None."""
        for op in opening(self.record.subject, seed):
            call = self.scene.call(self.record, self.live, op)
        return call

    @property
    def due(self) -> list[int]:
        """The rows that the caller has to reset before the next step, in DISABLED mode."""
        return due_rows(self.record)

    def reset_rows(self, rows: Sequence[int], **kwargs: Any) -> Call:
        """Reset some rows, by mask."""
        mask = np.isin(np.arange(self.scene.n), list(rows))
        return self.reset(**kwargs, options={"reset_mask": mask})

    def go_on(self, actions: Any) -> Call:
        """Step; in DISABLED mode, first reset the rows that ended."""
        if rows := self.due:
            self.reset_rows(rows)
        return self.step(actions)

    def acting(self, ending: Ending) -> Callable[[], Any]:
        """Draws the actions of each step on a way to an end; to be called before the reset."""
        names = {"env": self.live, "np": np, **PRELUDE}
        exec(ending.setup, names)
        code = compile(ending.actions, "<actions>", "eval")
        return lambda: eval(code, names)


class Method:
    """A method of an instance, or of a part of it, with dots between.

    Args:
        owner: The instance.
        path: Its name.
    """

    def __init__(self, owner: Recorded, path: str) -> None:
        self.owner, self.path = owner, path

    def __getattr__(self, name: str) -> Method:
        return Method(self.owner, f"{self.path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Call:
        """Call it, with what it returned as the result."""
        return self.called(args, kwargs)

    def called(self, args: Any, kwargs: Any, *, is_caught: bool = False) -> Call:
        """Call it."""
        given = {name: _given(value) for name, value in kwargs.items()}
        op = Op(self.path, tuple(map(_given, args)), given)
        return self.owner.scene.call(self.owner.record, self.owner.live, op, is_caught=is_caught)


def _given(argument: Any) -> Any:
    """An argument of a call as it is written down: a name stays a name."""
    if isinstance(argument, Recorded):
        return Given(argument.record.name, argument.live)
    if isinstance(argument, Method):
        owner = argument.owner
        return Given(f"{owner.record.name}.{argument.path}", attrgetter(argument.path)(owner.live))
    return argument
