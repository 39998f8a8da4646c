"""The examination before the checks: interface, size, capabilities, pace and endings."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypedDict

from sb3compat.conformance.findings import FactoryError, Family, family_name, short
from sb3compat.conformance.program.instances import counted
from sb3compat.conformance.program.types import Factory, Reference
from sb3compat.conformance.subject.actions import candidates
from sb3compat.conformance.subject.capabilities import (
    asked_options,
    assumed,
    capabilities,
    guessed_options,
)
from sb3compat.conformance.subject.interface import (
    check_attributes,
    check_factory,
    classes_of,
    family_of,
    mode_of,
    takes_batches,
)
from sb3compat.conformance.subject.pace import rough
from sb3compat.conformance.subject.scout import scout
from sb3compat.conformance.subject.singles import TOLD, kept_singles, known_singles, told
from sb3compat.conformance.subject.subject import Subject


class Given(TypedDict):
    """The arguments of `examine`, for a call in another process."""

    factory: Factory
    family: Family | None
    declared: Mapping[str, bool]
    options: Mapping[str, Any] | None
    reference: Reference | None


def examine(
    factory: Factory,
    *,
    family: Family | None = None,
    declared: Mapping[str, bool] | None = None,
    options: Mapping[str, Any] | None = None,
    reference: Reference | None = None,
    seconds: float | None = 10.0,
) -> Subject:
    """Make the environment once and collect the facts that the checks need.

    Args:
        factory: Makes the environment.
        family: Its interface; None to find out.
        declared: Capabilities that the user says it has or lacks.
        options: Options that its `reset` understands.
        reference: The factories of its single environments.
        seconds: How long to search for the end of an episode; None to leave that to `scout`.

    Raises:
        FactoryError: If the factory makes no vector environment. An exception of the factory
            itself passes through.
    """
    subject, env = look_at(factory, family, declared or {}, options, reference)
    try:
        subject = try_out(subject, env, declared or {})
    finally:
        with suppress(Exception):  # a check reports it
            env.close()
    return subject if seconds is None else scout(subject, seconds)


def look_at(
    factory: Factory,
    family: Family | None,
    declared: Mapping[str, bool],
    options: Mapping[str, Any] | None,
    reference: Reference | None,
) -> tuple[Subject, Any]:
    """Make the environment once, and collect the facts that take no call of its own.

    Returns it open, as `close` may hang. The arguments are those of `examine`.
    """
    check_factory(factory)
    others = multiprocessing.active_children()
    start = time.perf_counter()
    try:
        env = counted(factory)
    except SystemExit as error:
        raise FactoryError(
            f"Expected the factory to make an environment, got sys.exit({error.code!r}): it ends "
            "the interpreter. Raise an exception that says why instead."
        ) from error
    make_seconds = time.perf_counter() - start
    try:
        kind = family_of(env)
        if family not in (None, kind):
            raise FactoryError(
                f"Expected the factory to make {family_name(family or kind)}, got "
                f"{family_name(kind)}: {short(env)}. Use check_{kind}."
            )
        check_attributes(env, kind)
        single = env.action_space if kind == "vec_env" else env.single_action_space
        found = {**assumed(env, kind), **declared}
        given = reference is not None or not found["two_at_once"]
        singles = known_singles(env) if _apart(declared) and not given else ""
        if singles in TOLD:
            told(factory, env)
        subject = Subject(
            factory=factory,
            family=kind,
            num_envs=int(env.num_envs),
            mode=mode_of(env) if kind == "vector_env" else None,
            capabilities=found
            | {"options": options is not None, "reference": reference is not None or bool(singles)},
            options=options,
            reference=reference,
            singles=singles,
            action_space=single,
            actions=tuple(candidates(single)),
            make_seconds=rough(make_seconds),
            workers=any(child not in others for child in multiprocessing.active_children()),
            batched_actions=kind == "vec_env" or takes_batches(env),
            classes=tuple(classes_of(env)),
        )
    except BaseException:
        with suppress(Exception):
            env.close()
        raise
    return subject, env


_KEPT = (
    "Its rows are held against the environments in its list {0!r}, as they do the same. If it "
    "changes by design what these return: --no-capability reference."
)


def _apart(declared: Mapping[str, bool]) -> bool:
    """Whether a row may be held against a single environment.

    Alone, that does not see what other rows have done to a world that they share.
    """
    return all(declared.get(name, True) for name in ("reference", "separate_rows"))


def try_out(subject: Subject, env: Any, declared: Mapping[str, bool]) -> Subject:
    """Find out by trying what the environment can do; it may hang in that, or die."""
    if subject.options is not None or subject.workers:
        # Rows in other processes would arrive here as copies.
        declared = {"options": subject.options is not None, **declared}
    found = capabilities(env, subject.family, declared)
    asked, unnamed = ((), False) if subject.workers else asked_options(env, subject.family)
    if subject.family == "vector_env" and "options" not in declared:
        guess = guessed_options(env, asked, masked=found.get("masked_reset", False))
        subject = replace(subject, guess=guess)
    if found["options"]:
        asked = ()
    elif subject.guess is not None:
        found["options"], subject = True, replace(subject, options=subject.guess)
    simple = subject.family == "vec_env" and not subject.workers and not subject.alone
    if simple and _apart(declared) and not subject.referenced:
        # This comes last: a second instance may be in the way of the first.
        singles = kept_singles(env, subject.factory)
        notes = (*subject.notes, _KEPT.format(singles)) if singles else subject.notes
        subject = replace(subject, singles=singles, notes=notes)
        found["reference"] = bool(singles)
    known = {**subject.capabilities, **found}
    return replace(subject, capabilities=known, asked=asked, unnamed=unnamed)
