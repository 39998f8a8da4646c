"""The search for ways to the end of an episode, and for the time that a step takes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from sb3compat.conformance.findings import Family
from sb3compat.conformance.program.calls import opening
from sb3compat.conformance.program.script import Script
from sb3compat.conformance.subject.actions import policies
from sb3compat.conformance.subject.subject import Ending, Subject
from sb3compat.conformance.subject.traits import Traits, traits_of

_MOST_STEPS = 3000
_ASSUMED_STEPS = 200
# So many runs under other seeds follow the run of each policy.
_MORE_TRIES = 4
_MOST_ERRORS = 2
# Slower endings are left out if there is a quicker one.
_LONG_SECONDS = 1.0
_MOST_ENDINGS = 5

_NOT_TRUNCATED = (
    "By its flags, no episode ended by truncation, so truncation is not exercised. If the "
    "environment has a time limit, check it with a short one."
)


def unscouted(subject: Subject, note: str) -> Subject:
    """The subject with an assumed ending, for an environment in which `scout` hung or died."""
    setup, actions = policies(subject)[0]
    seed = 0 if subject.capabilities.get("seeding") else None
    assumed = Ending(setup, actions, seed, _ASSUMED_STEPS)
    return replace(subject, endings=(assumed,), notes=(*subject.notes, note))


def scout(subject: Subject, seconds: float) -> Subject:
    """Find ways to the end of an episode, and measure a step.

    Args:
        subject: The environment.
        seconds: How long to search, more or less.
    """
    deadline = time.perf_counter() + seconds
    search = _Scouting(subject, seconds)
    search.run()
    endings = search.chosen()
    traits = Traits()
    if subject.family == "vec_env":
        actions = endings[0].actions if endings else policies(subject)[-1][1]
        left = max(deadline - time.perf_counter(), seconds / 4)
        seeded = not subject.missing(("seeding",))
        traits = traits_of(subject.factory, subject.num_envs, seeded, actions, left)
    notes = [f"Looking for the end of an episode: {error}" for error in search.errors[:1]]
    if endings and not notes and not any(ending.truncated for ending in endings):
        notes.append(_NOT_TRUNCATED)
    return replace(
        subject,
        endings=tuple(endings),
        traits=traits,
        make_seconds=min(search.makes, default=subject.make_seconds),
        step_seconds=search.step_seconds,
        notes=(*subject.notes, *notes),
    )


class _Scouting:
    """Follows each policy until a row ends, or for its share of the time."""

    def __init__(self, subject: Subject, seconds: float) -> None:
        self.subject, self.seconds = subject, seconds
        self.found: list[tuple[int, Ending]] = []
        self.errors: list[Exception] = []
        self.makes: list[float] = []
        self._steps, self._spent = 0, 0.0

    def run(self) -> None:
        """Follow each policy once, then some under other seeds."""
        ways = policies(self.subject)
        begin = time.perf_counter()
        for number in range(len(ways) + _MORE_TRIES):
            again = number >= len(ways)
            left = begin + self.seconds / (2 if again else 1) - time.perf_counter()
            if left < 0 or len(self.errors) >= _MOST_ERRORS:
                return
            # A policy under which no row ends must leave time for the others.
            share = left if again else left / (len(ways) - number)
            seed = number // len(ways) if self.subject.capabilities.get("seeding") else None
            kind = number % len(ways)
            most = min(_MOST_STEPS, 4 * self._shortest()) if again else _MOST_STEPS
            self._try(kind, *ways[kind], seed, most, share)

    @property
    def step_seconds(self) -> float:
        """How long a step takes."""
        return self._spent / self._steps if self._steps else min(self.makes, default=0.0)

    def _shortest(self) -> int:
        return min((ending.steps for _, ending in self.found), default=_MOST_STEPS)

    def _try(
        self, kind: int, setup: str, actions: str, seed: int | None, most: int, share: float
    ) -> None:
        script, family = Script(self.subject.factory), self.subject.family
        count = 0
        started = until = time.perf_counter()
        try:
            script.run("env = make_env()")
            for line in opening(family, setup, seed):
                script.run(line)
            for count in range(1, most + 1):
                begin = time.perf_counter()
                script.run(f"result = env.step({actions})")
                now = time.perf_counter()
                if count == 1:  # JAX compiles the first step of each instance
                    self.makes.append(now - started)
                    until = now + share
                else:
                    self._spent += now - begin
                    self._steps += 1
                result = script.value("result")
                if _any_ended(family, result):
                    truncated = _any_truncated(family, result)
                    self.found.append((kind, Ending(setup, actions, seed, count, truncated)))
                    return
                if now > until:
                    return
        except Exception as error:  # a check reports it
            self.errors.append(error)
            if count:
                self.found.append((kind, Ending(setup, actions, seed, count)))
        finally:
            script.close()

    def chosen(self) -> list[Ending]:
        """A few endings of different policies and kinds, the shortest first."""
        known = sorted(self.found, key=lambda found: found[1].steps)
        quick = [k for k in known if k[1].steps * self.step_seconds <= _LONG_SECONDS]
        known = quick or known[:1]
        sampled = len(policies(self.subject)) - 1
        kept: list[tuple[int, Ending]] = []

        def keep(found: Iterable[tuple[int, Ending]]) -> None:
            for kind, ending in found:
                if all((kind, ending.truncated) != (k, e.truncated) for k, e in kept):
                    kept.append((kind, ending))

        keep(known[:1])
        keep([k for k in known if k[1].truncated != known[0][1].truncated][:1])
        keep([k for k in known if k[0] == sampled][:1])
        keep(known)
        return sorted((e for _, e in kept[:_MOST_ENDINGS]), key=lambda ending: ending.steps)


def _any_ended(family: Family, result: Any) -> bool:
    if family == "vec_env":
        return bool(np.any(result[2]))
    return bool(np.any(result[2]) or np.any(result[3]))


def _any_truncated(family: Family, result: Any) -> bool:
    if family == "vector_env":
        return bool(np.any(result[3]))
    with suppress(Exception):  # infos may be anything
        return any(bool(info.get("TimeLimit.truncated")) for info in result[3])
    return False
