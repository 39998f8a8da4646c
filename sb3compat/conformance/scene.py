"""Scenarios: checks that call an environment themselves, in plain Python.

A scenario is a function of a `Scene` that yields what has to hold, as a clause does. Each call of
its instances is written down, with what it returned: the script of a failure is made of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from sb3compat.conformance.choices import Choices
from sb3compat.conformance.findings import CheckError, EnvFailureError, NotExercisedError
from sb3compat.conformance.program.calls import acting
from sb3compat.conformance.program.draws import Draws
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.script import PRELUDE, to_source
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.programs import due_rows, opening
from sb3compat.conformance.record import OVERWRITE, Call, Given, Kind, Op, Record
from sb3compat.conformance.recording import announced, arguments, make, writable
from sb3compat.conformance.render import statements
from sb3compat.conformance.subject.subject import Ending, Subject
from sb3compat.conformance.values import Value, constant


class Scene(Choices):
    """What a scenario gets: instances of the environment, draws for their calls, and facts.

    A scenario calls the methods of its instances as usual, and yields each condition as soon as
    it can be told: it ends at the first demand that does not hold, or at a call that raises. It is
    run several times, and what differs from run to run has to come from `choose` or another draw.

    Args:
        subject: The environment under test.
        instances: Those of the process.
        draws: What is drawn.
        before_make: Called before each construction.
        before_call: Called with the source of each call.
        new: Whether no other program may have used the instances.

    Attributes:
        subject: The environment under test.
        family: Its interface, `"vec_env"` or `"vector_env"`.
        n: The number of its rows.
        records: What the instances did, in the order of their construction.
        missing: What this run could not test, and what to pass to test it.
        judged: To be set if the scenario has found its situation, and there is nothing to demand.
        used: Whether other programs have used one of the instances before.
    """

    def __init__(
        self,
        subject: Subject,
        instances: Instances,
        draws: Draws,
        before_make: Callable[[], None],
        before_call: Callable[[str], None],
        *,
        new: bool = True,
    ) -> None:
        super().__init__(subject, draws)
        self.records: list[Record] = []
        self.missing = ""
        self.judged = self.used = False
        self._instances, self._new = instances, new
        self._before_make, self._before_call = before_make, before_call
        self._opened: list[tuple[Record, Any]] = []
        self._around: list[Record] = []
        self._undo: list[Callable[[], object]] = []
        self._spoilt = False
        self._numbers = count()

    def partly(self, missing: str) -> None:
        """Note that a part of the contract is not tested, and what to pass to test it."""
        self.missing = self.missing or missing

    def make(self, name: str = "env") -> Recorded:
        """A new instance, not reset yet, with the name that it has in a script."""
        record = Record(self.subject, name, next(self._numbers))
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
        """A new instance and the call of its reset, with a seed if it takes one."""
        env = self.make()
        seed = self.seed() if self.subject.capabilities.get("seeding") else None
        return env, env.restart(seed)

    def let(self, name: str, value: Any) -> Recorded:
        """An object to pass to a method; its `value` shows whether a call changed it."""
        record = self._noted(name, f"{name} = {to_source(value)}")
        return Recorded(self, record, deepcopy(value))

    def made_by(self, maker: Given | str, name: str, *args: Any, **kwargs: Any) -> Recorded:
        """What a function makes, under a name of its own.

        Args:
            maker: What `imported` has returned, or the name of a helper of scripts.
            name: What a script calls the object.
            args: The arguments, instances among them.
            kwargs: The arguments by name.

        Raises:
            EnvFailureError: If it raises.
        """
        given = Given(maker, PRELUDE[maker]) if isinstance(maker, str) else maker
        if not isinstance(given, Given):
            hint = "Import it before: [maker] = scene.imported('my_module', 'MyWrapper')"
            raise TypeError(f"Expected what `scene.imported` has returned, got {maker!r}. {hint}")
        op = _op(given.source, args, kwargs, kind="function")
        record = self._noted(name, f"{name} = {op.source()}")
        self._around.append(record)
        positional, named = arguments(op, None)
        try:
            made = given.value(*positional, **named)
        except (Exception, SystemExit) as error:
            self._spoilt = True
            raise EnvFailureError(record.made, error, trace_of(error, last=12)) from error
        # Helpers of scripts look into an instance, or change it; some return what undoes that.
        if isinstance(maker, str):
            self._undo += [made] if callable(made) else []
            self._spoilt |= not callable(made)
        return Recorded(self, record, made)

    def tried(self, maker: Given, name: str, *args: Any, **kwargs: Any) -> tuple[Recorded, Value]:
        """What a function makes, as `made_by`, and the exception that it raised, or None."""
        try:
            return self.made_by(maker, name, *args, **kwargs), constant(None)
        except EnvFailureError as failure:
            record = self.records[-1]
            call = record.made.partition(" = ")[2]
            record.made = f"error = caught(lambda: {call})"
            return Recorded(self, record, None), Value(-1, "error", failure.error, failure.error)

    def part(self, env: Recorded, path: str, name: str) -> Recorded:
        """An attribute of an instance, as an object with a name of its own."""
        record = self._noted(name, f"{name} = {env.record.name}.{path}")
        return Recorded(self, record, attrgetter(path)(env.live))

    def delete(self, env: Recorded, kept: Recorded) -> None:
        """Delete an instance around another one, or below which another one goes on.

        Args:
            env: The instance.
            kept: The other one, which is closed at the end.
        """
        self._opened = [
            (record, kept.live if live is env.live else live) for record, live in self._opened
        ]
        env.live, self._spoilt = None, True
        self._noted("", f"del {env.record.name}")
        self.made_by(self.imported("gc", "collect")[0], "unreachable")

    def imported(self, module: str, *names: str) -> list[Given]:
        """Names that a script imports from a module, such as wrappers, for `made_by`."""
        self._noted(module, f"from {module} import {', '.join(names)}")
        found = __import__(module, fromlist=names)
        return [Given(name, getattr(found, name)) for name in names]

    def single(self, i: int) -> Recorded:
        """The single environment of a row; the check `needs=["reference"]`."""
        record = self._noted(f"single_{i}", row=i)
        return Recorded(self, record, (self._instances.reference or ())[i]())

    def single_is_wrapped(self, wrapper: type) -> bool:
        """Whether there is such a wrapper around the first single environment."""
        single = (self._instances.reference or ())[0]()
        return any(isinstance(layer, wrapper) for layer in (single, *PRELUDE["below"](single)))

    def caught(self, method: Method, *args: Any, **kwargs: Any) -> Call:
        """Call a method that may raise: the `error` of the call is the exception, or None."""
        op = _op(method.path, args, kwargs)
        return self.call(method.owner.record, method.owner.live, op, is_caught=True)

    def call(self, record: Record, env: Any, op: Op, *, is_caught: bool = False) -> Call:
        """Make a call of an instance, and take it down.

        Raises:
            EnvFailureError: If it raises, and is not meant to.
            CheckError: If the name of the instance stands for a newer one since, in a script.
        """
        if record is not next(each for each in reversed(self.records) if each.name == record.name):
            raise CheckError(
                f"Expected a call of the newest instance called {record.name!r}, got an older one. "
                "Use a name for each, as in scene.make('twin')."
            )
        step = record.calls[-1].step if record.calls else 0
        step += op.method in ("step", "step_async")
        call = Call(next(self._numbers), op, record.name, step, is_caught=is_caught)
        line = announced(record.family, call, record.calls)
        said = f"error = caught(lambda: {op.source(record.name)})" if is_caught else line
        self._before_call(said)
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

    def _noted(self, name: str, made: str | None = None, row: int | None = None) -> Record:
        """The record of an object, with the statement of a script that makes it."""
        record = Record(self.subject, name, next(self._numbers), row)
        record.made = made or record.made
        self._before_call(record.made)
        self.records.append(record)
        return record

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
            record.settled and not any(call.failure for call in record.calls)
            for record in (*(record for record, _ in self._opened), *self._around)
        )
        names = {id(env): record.name for record, env in self._opened}
        envs = [env for _, env in self._opened]
        keep = whole and calm and not self._spoilt and self._instances.shared
        for undo in self._undo if keep else ():
            undo()
        for env in reversed(self._instances.give_back(envs, keep=keep)):
            self._before_call(f"{names[id(env)]}.close()")
            self._instances.end(env)
        self._opened = []


class Recorded:
    """An instance in a scenario: its methods are called as usual, and each returns a call.

    The results of a call are its attributes, as in a record: `env.step(actions).rewards`. Each of
    them is a value for `expect`; its own `value` is the array or dict itself.

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
        """Write into the observations, rewards and infos that the last call has returned."""
        self.scene.call(self.record, self.live, Op(OVERWRITE))

    def attribute(self, path: str) -> Value:
        """An attribute, by its name: for `expect`, before the next call."""
        value = attrgetter(path)(self.live)
        return Value(-1, f"{self.record.name}.{path}", value, value)

    def read(self, path: str) -> Value:
        """An attribute as it is now: for `expect`, also after later calls."""
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

    def restart(self, seed: int | None = None) -> Call:
        """Reset all rows, under a seed if one is given, as the interface wants it."""
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

    def to_an_end(self, ending: Ending) -> Call:
        """Reset, and step until the episode of a row ends.

        Args:
            ending: The way there, from `Scene.ending`.

        Returns:
            The step in which it ended, with the rows in `ended`.

        Raises:
            NotExercisedError: If none ends this time. The check is not exercised then.
        """
        act = self.acting(ending)
        self.restart(ending.seed)
        for _ in range(1, 3 * ending.steps + 20):
            step: Call = self.step(act())
            if step.ended:
                return step
        raise NotExercisedError("the episode did not end again")

    def acting(self, ending: Ending) -> Callable[[], Any]:
        """The function that draws the actions of each step to an end; ask before the reset."""
        return acting(self.live, ending.setup, ending.actions)


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
        op = _op(self.path, args, kwargs)
        return self.owner.scene.call(self.owner.record, self.owner.live, op)


def _op(method: str, args: Sequence[Any], kwargs: Any, kind: Kind = "method") -> Op:
    given = {name: _given(value) for name, value in kwargs.items()}
    return Op(method, tuple(map(_given, args)), given, kind)


def _given(argument: Any) -> Any:
    """An argument of a call as it is written down: a name stays a name."""
    if isinstance(argument, Recorded):
        return Given(argument.record.name, argument.live)
    if isinstance(argument, Method):
        owner = argument.owner
        return Given(f"{owner.record.name}.{argument.path}", attrgetter(argument.path)(owner.live))
    return writable(argument)
