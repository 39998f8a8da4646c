"""One scenario: it is run with several draws, and a failure is shrunk by simpler draws."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import EnvFailureError, Finding, NotExercisedError, said_by
from sb3compat.conformance.judge import Demand, demands
from sb3compat.conformance.program.draws import Draws
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.journal import journal
from sb3compat.conformance.program.perturb import perturb
from sb3compat.conformance.record import Record
from sb3compat.conformance.render import lines_of, shortened, told
from sb3compat.conformance.run.report import UNREACHED, Result
from sb3compat.conformance.run.reproduction import (
    FACTORY_FAILS,
    NOT_EVERY_TIME,
    Failure,
    failed,
    failure_to_make,
    mistaken,
)
from sb3compat.conformance.scene import Scene
from sb3compat.conformance.subject.pace import makes_of, program_seconds, shrinks_of
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject

_FEWEST_RUNS = 2
# A single run is enough if it takes so many seconds and there is no time for two.
_SLOW = 1.0
# The time for shrinking a failure, as a multiple of the time for the search.
_SHRINK_SHARE = 2.0


class Staging:
    """The runs of one scenario.

    Attributes:
        count: The number of runs.
    """

    def __init__(
        self, check: Check, subject: Subject, settings: Settings, instances: Instances
    ) -> None:
        self._check, self._subject, self._settings = check, subject, settings
        self._instances, self._new = instances, check.new
        self._exercised = False
        self._reason, self._missing = UNREACHED, ""
        self.count = 0

    def result(self) -> Result:
        """The result."""
        found = self._search()
        if found is not None:
            first, draws = found
            best = self._shrunk(first, draws)
            # Calls that are left out change what follows if a used instance is not as a new one.
            lasting = self._subject.forked and not self._subject.shared
            shorter = None if lasting else best.shorter
            for failure in filter(None, (shorter, best, first)):
                result = failed(self._check, self._subject, self._settings, failure)
                if NOT_EVERY_TIME not in result.message:
                    break
            return result
        if self._exercised:
            return Result.of(self._check, "passed")
        if self._missing:
            return Result.of(self._check, "partly_exercised", message=self._missing)
        return Result.of(self._check, "not_exercised", message=self._reason)

    def _search(self) -> tuple[Failure, list[int]] | None:
        """The first failure, and its draws."""
        settings = self._settings
        deadline = time.perf_counter() + settings.seconds
        slow = program_seconds(self._subject) > max(settings.seconds, _SLOW)
        fewest = 1 if slow else min(_FEWEST_RUNS, settings.programs)
        calls = self._instances.calls
        done: set[tuple[int, ...]] = set()
        for number in range(settings.programs):
            made = self._instances.calls - calls >= makes_of(self._subject)
            late = time.perf_counter() > deadline and number >= fewest
            if () in done or (number and made) or late:
                break
            random = Random(1_000_003 * settings.seed + number) if number else None
            draws = Draws(random=random, done=done)
            failure, used = self._run(draws)
            if failure is not None and used and not self._run(Draws(draws.made), new=True)[0]:
                # Only an instance that others have used shows it: begin once more with new ones.
                self._instances.close()
                self._new = True
                failure = self._run(Draws(draws.made))[0]
            if failure is not None:
                return failure, draws.made
            draws.end(done)
        return None

    def _shrunk(self, first: Failure, made: Sequence[int]) -> Failure:
        """The failure with the simplest draws that still fail."""
        best, known = first, list(made)
        left = shrinks_of(self._subject, self._settings.programs)
        deadline = time.perf_counter() + _SHRINK_SHARE * self._settings.seconds
        if first.own or first.message.startswith(FACTORY_FAILS):
            return first
        for place in range(len(known)):
            tried: set[int] = set()
            while left > 0 and time.perf_counter() <= deadline:
                simpler = (0, known[place] // 2, known[place] - 1)
                new = next((k for k in simpler if 0 <= k < known[place] and k not in tried), None)
                if new is None:
                    break
                tried.add(new)
                left -= 1
                draws = Draws([*known[:place], new, *known[place + 1 :]])
                failure, _ = self._run(draws, new=True)
                if failure is not None and failure.size <= best.size:
                    best, known = failure, [*draws.made, *[0] * len(known)][: len(known)]
        return best

    def _run(self, draws: Draws, *, new: bool = False) -> tuple[Failure | None, bool]:
        """Run the scenario once.

        Returns:
            The failure, or None; and whether other programs have used the instances before.
        """
        self.count += 1
        with journal(self._settings.journal) as write:
            before_make, new = perturb(self._settings.seed), new or self._new
            scene = Scene(self._subject, self._instances, draws, before_make, write, new=new)
            failure, whole = None, False
            try:
                failure = self._judged(scene)
                whole = True
            except NotExercisedError as error:
                self._reason, whole = str(error), True
            except EnvFailureError as error:
                failure = self._errored(scene, error)
            except (Exception, SystemExit) as error:
                failure = mistaken(self._check, error, scene.lines)
            finally:
                scene.close(whole=whole)
        return failure, scene.used

    def _judged(self, scene: Scene) -> Failure | None:
        """The failure of the first demand that does not hold."""
        made = False
        for demand in demands(self._check.function(scene), self._check.function):
            made = True
            if not demand.holds():
                shorter = _broken(shortened(scene.records, demand), demand)
                return replace(_broken(scene.records, demand), shorter=shorter)
        self._missing = self._missing or scene.missing
        self._exercised |= (made or scene.judged) and not scene.missing
        return None

    def _errored(self, scene: Scene, error: EnvFailureError) -> Failure:
        """The failure of a call that raised."""
        if error.error is self._instances.failure:
            self._instances.excused = True
            return failure_to_make(self._instances.failed_in, error.error, error.trace)
        lines = scene.lines
        steps = [call.step for call in scene.records[-1].calls]
        finding = Finding(lines[-1], said_by(error.error), "no exception", max(steps, default=0))
        return Failure("errored", str(error), error.trace, lines, finding, error.error)


def _broken(records: Sequence[Record], demand: Demand) -> Failure:
    """The failure of a demand that does not hold."""
    finding, message = told(records, demand)
    return Failure("failed", message, "", lines_of(records, demand), finding)
