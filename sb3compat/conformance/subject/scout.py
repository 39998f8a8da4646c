"""The search for ways to the end of an episode, and for the time that a step takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from sb3compat.conformance.findings import Family, said_by
from sb3compat.conformance.program.calls import acting, reset
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.subject.actions import policies
from sb3compat.conformance.subject.pace import rough, steps_of
from sb3compat.conformance.subject.subject import Ending, Subject
from sb3compat.conformance.subject.traits import Traits, traits_of

equal, snapshot = map(PRELUDE.__getitem__, ("equal", "snapshot"))

_MOST_STEPS = 3000
_ASSUMED_STEPS = 200
# The number of runs with other seeds after the first run of each policy.
_MORE_TRIES = 4
_MOST_ERRORS = 2
# How often the progress of the search is reported.
_TELLS_EVERY = 0.5
# After this many steps of an episode, the pace decides how many more are allowed.
_LOOKS_AT_PACE = (4, 40)
# Slower endings are left out if there is a quicker one.
_LONG_SECONDS = 1.0
# An instance that takes this many seconds to make is used by more than one program.
LONG_MAKE = 0.05
# With slower steps nothing more is looked at.
_LONGEST_STEP = 1.0
# The number of steps that shows whether a used instance is like a new one, if no end is near.
_FEW_STEPS = 30
# So many times the steps to an end are made to see other ends after it.
_TURNS = 10
_MOST_ENDINGS = 5

_NOT_TRUNCATED = (
    "By its flags, no episode ended by truncation, so truncation is not exercised. If the "
    "environment has a time limit, check it with a short one."
)


def unscouted(subject: Subject, lost: str) -> Subject:
    """The subject with an assumed ending, for an environment in which `scout` hung or died."""
    setup, actions = policies(subject)[0]
    seed = 0 if subject.capabilities.get("seeding") else None
    assumed = Ending(setup, actions, seed, _ASSUMED_STEPS)
    notes = (*subject.notes, lost[:1].upper() + lost[1:])
    return replace(subject, endings=(assumed,), notes=notes, lost=lost)


def scout(
    subject: Subject,
    seconds: float = math.inf,
    tell: Callable[[str], None] = lambda text: None,
) -> Subject:
    """Find ways to the end of an episode, measure a step, and see whether instances can be shared.

    Args:
        subject: The environment.
        seconds: How long to search at most, more or less. Without a limit the steps count alone.
        tell: Called with what is going on.
    """
    instances = subject.instances()
    instances.shared = subject.forked
    try:
        search = _Scouting(subject, instances, seconds, tell)
        search.run()
        endings = search.chosen()
        traits = Traits()
        if subject.family == "vec_env" and search.step_seconds < _LONGEST_STEP:
            tell("resetting it a few times")
            seeded = not subject.missing(("seeding",))
            resets = search.reset_seconds
            traits = traits_of(instances, subject.num_envs, seeded, resets)
        notes = [f"Looking for the end of an episode: {error}" for error in search.errors[:1]]
        truncates = any(ending.truncated for ending in endings)
        if endings and not notes and not truncates:
            tell("looking at later ends of episodes")
            most = steps_of(rough(search.step_seconds)) // (2 * len(endings))
            truncates = any(truncates_later(subject, each, instances, most) for each in endings)
            notes += [] if truncates else [_NOT_TRUNCATED]
        found = replace(
            subject,
            endings=tuple(endings),
            truncates=truncates,
            traits=traits,
            make_seconds=subject.make_seconds
            if subject.forked
            else rough(min(search.makes, default=subject.make_seconds)),
            reset_seconds=rough(search.reset_seconds),
            step_seconds=rough(search.step_seconds),
            notes=(*subject.notes, *notes),
        )
        tell("comparing a used instance with a new one")
        shared = instances.shared and not subject.alone and like_new(found, instances)
        return replace(found, shared=shared)
    finally:
        instances.close()


def truncates_later(subject: Subject, ending: Ending, instances: Instances, most: int) -> bool:
    """Whether an end after the first one is a truncation, in this many steps at most."""
    family = subject.family
    with suppress(Exception), instances.lent() as (env, _):  # a check reports it
        act = acting(env, ending.setup, ending.actions)
        reset(env, family, ending.seed)
        for _ in range(min(_TURNS * ending.steps, most)):
            result = env.step(act())
            if _any_truncated(family, result):
                return True
            if subject.mode == "Disabled" and _any_ended(result):
                env.reset(options={"reset_mask": PRELUDE["ended"](*result[2:4])})
    return False


def like_new(subject: Subject, instances: Instances) -> bool:
    """Whether an instance behaves after a seed and a reset as it did when it was new."""
    ending = subject.endings[0] if subject.endings else None
    _, actions = policies(subject)[0]
    setup, seed, steps = "", 0 if subject.capabilities.get("seeding") else None, _FEW_STEPS
    if ending is not None:
        setup, actions, seed = ending.setup, ending.actions, ending.seed
        quick = ending.steps * subject.step_seconds <= _LONG_SECONDS
        steps = ending.steps if quick else min(ending.steps, _FEW_STEPS)
    try:
        with instances.lent(new=True) as (env, _):
            runs = []
            for _ in range(2):
                act = acting(env, setup, actions)
                first = reset(env, subject.family, seed)
                seen = [snapshot(first[0] if subject.family == "vector_env" else first)]
                seen += [snapshot(tuple(env.step(act())[:-1])) for _ in range(steps)]
                runs.append(seen)
    except Exception:  # a check reports it
        return False
    return bool(equal(*runs))


class _Scouting:
    """Follows each policy until a row ends, or for as many steps as its pace allows."""

    def __init__(
        self,
        subject: Subject,
        instances: Instances,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        self.subject, self.instances, self.seconds, self.tell = subject, instances, seconds, tell
        self.found: list[tuple[int, Ending]] = []
        self.errors: list[str] = []
        self.makes: list[float] = []
        self._resets: list[float] = []
        self._steps: list[float] = []

    def run(self) -> None:
        """Follow each policy once, then some under other seeds."""
        ways = policies(self.subject)
        begin = time.perf_counter()
        count = len(ways) + _MORE_TRIES
        for number in range(count):
            again = number >= len(ways)
            left = begin + self.seconds / (2 if again else 1) - time.perf_counter()
            if left < 0 or len(self.errors) >= _MOST_ERRORS:
                return
            self.tell(f"looking for the end of an episode, try {number + 1} of {count}")
            # A policy under which no row ends must leave time for the others.
            share = left if again else left / (len(ways) - number)
            seed = number // len(ways) if self.subject.capabilities.get("seeding") else None
            kind = number % len(ways)
            most = min(_MOST_STEPS, 4 * self._usual()) if again else _MOST_STEPS
            self._try(kind, *ways[kind], seed, most, share)
            if number == len(ways) - 1 and not self.found:
                # Without an end, the most important checks are not exercised: wait longer for one.
                left = begin + self.seconds - time.perf_counter()
                self._try(kind, *ways[kind], seed, _MOST_STEPS, left, patient=True)
                return

    @property
    def reset_seconds(self) -> float:
        """How long a reset takes."""
        return min(self._resets, default=0.0)

    @property
    def step_seconds(self) -> float:
        """How long a step takes."""
        return median(self._steps) if self._steps else min(self.makes, default=0.0)

    def _usual(self) -> int:
        return int(median([ending.steps for _, ending in self.found] or [_MOST_STEPS]))

    def _try(
        self,
        kind: int,
        setup: str,
        actions: str,
        seed: int | None,
        most: int,
        share: float,
        *,
        patient: bool = False,
    ) -> None:
        family, count, doing = self.subject.family, 0, "make_env()"
        started = until = told = time.perf_counter()
        try:
            with self.instances.lent() as (env, used):
                doing = "env.reset()"
                made = time.perf_counter()
                act = acting(env, setup, actions)
                reset(env, family, seed)
                self._resets.append(time.perf_counter() - made)
                doing = f"env.step({actions})"
                for count in range(1, _MOST_STEPS + 1):
                    begin = time.perf_counter()
                    result = env.step(act())
                    now = time.perf_counter()
                    if now - told > _TELLS_EVERY:
                        told = now
                        self.tell("")
                    if count == 1:
                        until = now + share
                    if count == 1 and not used:  # JAX compiles the first step of each instance
                        self.makes.append(now - started)
                        self.instances.shared |= now - started >= LONG_MAKE
                    else:
                        self._steps.append(now - begin)
                    if _any_ended(result):
                        truncated = _any_truncated(family, result)
                        self.found.append((kind, Ending(setup, actions, seed, count, truncated)))
                        break
                    if count in _LOOKS_AT_PACE:
                        most = min(most, steps_of(rough(self.step_seconds), patient=patient))
                    if now > until or count >= most:
                        break
        except (Exception, SystemExit) as error:  # a check reports it
            self.errors.append(f"{doing} raised {said_by(error)}")
            if count:
                self.found.append((kind, Ending(setup, actions, seed, count)))

    def chosen(self) -> list[Ending]:
        """A few endings of different policies and kinds, the shortest first."""
        known = sorted(self.found, key=lambda found: found[1].steps)
        step = rough(self.step_seconds)
        quick = [k for k in known if k[1].steps * step <= _LONG_SECONDS]
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


def _any_ended(result: Any) -> bool:
    return bool(PRELUDE["ended"](result[2], result[-2]).any())


def _any_truncated(family: Family, result: Any) -> bool:
    if family == "vector_env":
        return bool(np.any(result[3]))
    with suppress(Exception):  # infos may be anything
        return any(bool(info.get("TimeLimit.truncated")) for info in result[3])
    return False
