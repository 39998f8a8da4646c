"""A failing program, run once more, and the result with the script that reproduces it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from traceback import extract_tb

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import EnvFailureError, Finding, NotExercisedError, said_by
from sb3compat.conformance.program.instances import make_ahead
from sb3compat.conformance.program.journal import journal
from sb3compat.conformance.program.perturb import perturb
from sb3compat.conformance.program.plain import Plain, without_helpers
from sb3compat.conformance.program.script import SCRIPT, Script, standalone
from sb3compat.conformance.program.trace import trace_of
from sb3compat.conformance.run.report import Moment, Result, Status
from sb3compat.conformance.run.timeline import WATCH, Timeline, watched
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.singles import reference_line
from sb3compat.conformance.subject.subject import Subject

# What the messages of failures say that are not certain, or not the environment's.
NOT_EVERY_TIME = "not every time: the same program did not fail in this way when it was run again"
FACTORY_FAILS = "make_env() raised"
_REFERENCE = re.compile(r"\breference\b")
CHECK_FAILS = "the check itself raised"
OWN_MISTAKE = "This is a mistake in sb3compat: please report it."
# What the caller sees of a worker that has died, by chance one or the other.
_LOST_WORKER = (EOFError, ConnectionError)


@dataclass(frozen=True)
class Failure:
    """A program that failed.

    Attributes:
        status: `failed` or `errored`.
        message: The result in one line.
        trace: The traceback of an exception.
        lines: The statements.
        finding: The result in parts.
        error: The exception of the environment; None for a broken contract.
        own: Whether the check itself failed, not the environment.
        shorter: The failure without the calls that the demand is not about, if that fails, too.
    """

    status: Status
    message: str
    trace: str
    lines: tuple[str, ...]
    finding: Finding | None
    error: BaseException | None = None
    own: bool = False
    shorter: Failure | None = None

    @property
    def size(self) -> tuple[int, int, int]:
        """What the search minimizes: a broken contract before an exception, then the length."""
        violated = 0 if self.status == "failed" else 1
        return violated, len(self.lines), sum(map(len, self.lines))

    def is_like(self, other: EnvFailureError, *, at_the_end: bool) -> bool:
        """Whether the program failed in the same way when it was run again.

        Args:
            other: The exception that it raised then.
            at_the_end: Whether its last statement raised it.
        """
        error = other.error
        if self.error is None:
            # The assertion itself has failed, and nothing that it calls.
            in_the_script = extract_tb(error.__traceback__)[-1].filename == SCRIPT
            return at_the_end and isinstance(error, AssertionError) and in_the_script
        if isinstance(self.error, _LOST_WORKER):
            return isinstance(error, _LOST_WORKER)
        # A factory may define the class of its exceptions anew in each call.
        return type(error).__qualname__ == type(self.error).__qualname__


def failure_to_make(calls: int, error: BaseException, trace: str) -> Failure:
    """The factory has made instances, and raises in this call: the calls alone are the program."""
    line = f"for _ in range({calls}):\n    env = make_env()\n    env.close()"
    message = f"{FACTORY_FAILS} {said_by(error)}, in call {calls} within one process"
    finding = Finding("make_env()", said_by(error), "an environment, each time", 0)
    return Failure("errored", message, trace, (line,), finding, error)


def mistaken(check: Check, error: BaseException, lines: tuple[str, ...] = ()) -> Failure:
    """The check itself has raised, which says nothing about the environment."""
    home = check.function.__module__
    advice = f"The mistake is in {home}.{check.id}, not in the environment."
    if home.startswith("sb3compat."):
        advice = OWN_MISTAKE
    message = f"{CHECK_FAILS} {said_by(error).removesuffix('.')}. {advice}"
    return Failure("errored", message, trace_of(error), lines, None, own=True)


def failed(check: Check, subject: Subject, settings: Settings, failure: Failure) -> Result:
    """The result of a check that failed; the program is run once more for its timeline."""
    row = failure.finding.row if failure.finding else None
    again, moments = _replay(subject, settings, failure, row)
    twice = moments and not subject.forked  # making instances takes long
    others = _replay(subject, settings, failure, row)[1] if twice else ()
    # A check may fail by itself before the first statement.
    last = again or Plain(failure.lines[-1] if failure.lines else "")
    message, finding = last.told(failure.message), failure.finding
    if finding:
        what, should = last.told(finding.what), last.told(finding.should)
        finding = replace(finding, what=what, should=should)
    if not again and not failure.own:
        message += f" ({NOT_EVERY_TIME})"
    return replace(
        Result.of(check, failure.status, message=message),
        reproduction=reproduction(check, subject, settings, [*failure.lines[:-1], last.line])
        if failure.lines
        else "",
        trace=failure.trace,
        timeline=_with_variation(moments, others),
        finding=finding,
    )


def _with_variation(moments: tuple[Moment, ...], others: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """The moments of a program, with the values named that are others when it runs again."""
    if [(m.step, m.row) for m in others] != [(m.step, m.row) for m in moments]:
        return moments  # an environment that is not deterministic may have gone another way
    return tuple(map(Moment.held_against, moments, others))


def reproduction(check: Check, subject: Subject, settings: Settings, lines: Iterable[str]) -> str:
    """The standalone script that consists of these statements."""
    lines = list(lines)
    if subject.singles and any(map(_REFERENCE.search, lines)):
        lines.insert(0, reference_line(subject.singles, subject.num_envs))
    title = f"{check.id}: {check.contract}\n\n{check.source}\n"
    return standalone(lines, settings.make_env, title, guarded=subject.workers)


def timeline_of(subject: Subject, settings: Settings, lines: Sequence[str]) -> tuple[Moment, ...]:
    """The timeline of a program: the outcomes of its last steps."""
    return _replay(subject, settings, Failure("failed", "", "", tuple(lines), None))[1]


def _replay(
    subject: Subject, settings: Settings, failure: Failure, row: int | None = None
) -> tuple[Plain | None, tuple[Moment, ...]]:
    """Run a program once more: its last statement if it fails like this again; its timeline."""
    again = None
    make_ahead(subject.factory, ())  # a failure counts if an instance shows it that is really new
    instances = replace(subject, shared=False).instances()
    timeline = Timeline(subject, row)
    with journal(settings.journal) as write:
        script = Script(instances, perturb(settings.seed), write)
        script.namespace[WATCH] = timeline.watch
        survived = 0
        try:
            for line in failure.lines:
                script.run(watched(line))
                timeline.note(line, script)
                survived += 1
        except EnvFailureError as error:
            at_the_end = survived == len(failure.lines) - 1
            if failure.is_like(error, at_the_end=at_the_end):
                last = failure.lines[-1]
                again = without_helpers(last, script.value) if at_the_end else Plain(last)
        except NotExercisedError:  # it needs two instances, which cannot be made
            pass
        finally:
            script.close()
    return again, timeline.moments
