"""`sb3compat check`; `sb3compat.cli` has its arguments."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import gymnasium as gym

from sb3compat.conformance.commands.expected import expected_failures
from sb3compat.conformance.commands.targets import (
    FACTORY,
    Target,
    check_reference,
    making_of,
    resolve,
    resolve_reference,
)
from sb3compat.conformance.commands.usage import (
    CLEAN,
    FAILED,
    INTERRUPTED,
    UsageError,
    complain,
    write,
)
from sb3compat.conformance.findings import FactoryError
from sb3compat.conformance.output import FORMATS, brief, render, renderer
from sb3compat.conformance.output.progress import Progress
from sb3compat.conformance.run.child import factory_trace
from sb3compat.conformance.run.entry import InterruptedRunError, run
from sb3compat.conformance.run.options import Options, OptionsError
from sb3compat.conformance.run.report import Report
from sb3compat.errors import WorkerError, cannot_be_made

# By what Gymnasium refuses an id, or names a package that is missing; else the environment failed.
_REFUSALS = (
    gym.error.UnregisteredEnv,
    gym.error.DeprecatedEnv,
    gym.error.DependencyNotInstalled,
)
_NO_MODULE = "Environment registration via importing a module failed"
# What a `WorkerError` says of a script that starts workers where a worker imports it.
_NO_GUARD = "to start workers only where it is run as the program"


def command(given: Namespace) -> int:
    """Check an environment, and write its report."""
    try:
        # Wrong options are refused before the target is imported, which may take a minute.
        files = _files(given)
    except UsageError as error:
        return complain(str(error))
    try:
        with closing(Progress(sys.stderr, quiet=given.quiet)) as progress:
            options = _options(given)
            options.check_names()
            target = resolve(given.target, making_of(given))
            options = _for_target(options, given, target)
            progress.say(f"making {target.name}")
            report, code = _run(target, options, progress)
    except (UsageError, FactoryError, OptionsError) as error:
        return complain(str(error))
    except Exception as error:
        return complain_of(given.target, error, given.env_kwargs)
    if given.no_times:
        report = report.without_times()
    try:
        for form, path in files:
            write(path, render(report, form))
    except UsageError as error:
        _show(report, given)  # or the run would be lost
        return complain(str(error))
    if given.output is None:
        _show(report, given)
    return code


def _run(target: Target, options: Options, progress: Progress) -> tuple[Report, int]:
    """The report, of the checks so far if the user interrupts them, and the exit code."""
    try:
        report = run(
            target.factory,
            options=options,
            target=target.name,
            progress=progress,
            tell=progress.say,
            began=progress.began,
        )
    except InterruptedRunError as error:
        complain("interrupted")
        return error.report, INTERRUPTED
    return report, CLEAN if report.ok else FAILED


def complain_of(target: str, error: Exception, env_kwargs: object = None) -> int:
    """Print why the target cannot be made, and return the exit code."""
    hint = " Does it take the arguments of --env-kwargs?" if env_kwargs else ""
    trace, line = why_not_made(target, error)
    print(trace, file=sys.stderr, end="")
    return complain(line + hint * bool(trace))


def why_not_made(target: str, error: Exception) -> tuple[str, str]:
    """Why an environment cannot be made: a traceback, unless the line is enough, and a line."""
    if isinstance(error, WorkerError) and _NO_GUARD in str(error):
        return "", f"{target} cannot be made: {error}"
    refusal = None if FACTORY.fullmatch(target) else _refusal(target, error)
    if refusal is not None:
        return "", f"{target!r} cannot be made: {cannot_be_made(target, refusal)}"
    return f"{factory_trace(error)}\n", f"{target} cannot be made, see above."


def _refusal(env_id: str, error: Exception) -> Exception | None:
    """What Gymnasium has against an id; None if the environment itself raised the exception."""
    if isinstance(error, _REFUSALS) or type(error) is gym.error.Error or _NO_MODULE in str(error):
        return error
    if isinstance(error, EOFError | ConnectionError) and ":" not in env_id:
        # A worker of SubprocVecEnv raised it, of which this process learns only that it has ended.
        try:
            gym.spec(env_id)
        except _REFUSALS as refusal:
            return refusal
    return None


def _files(given: Namespace) -> list[tuple[str, Path]]:
    """The formats and paths of the reports.

    A path that cannot be written and a library that is missing are told of before the run; of the
    library, `sb3compat.cli` tells.
    """
    files = [(form, getattr(given, form)) for form in FORMATS[1:]]
    files = [(form, path) for form, path in [*files, (given.format, given.output)] if path]
    for form, path in files:
        if path.is_dir() or not path.parent.is_dir():
            raise UsageError(
                f"Expected the path of a file in a folder that exists, for the report as {form}, "
                f"got {str(path)!r}. Make the folder, or name another one."
            )
        renderer(form)
    if given.output is None and not _is_brief(given):
        renderer(given.format)
    return files


def options_of(given: Namespace, target: Target) -> Options:
    """The options of a run, from those of the command line or of pytest.

    Raises:
        UsageError: If they contradict one another, or name what does not exist.
    """
    return _for_target(_options(given), given, target)


def _options(given: Namespace) -> Options:
    """The options that can be judged without the environment."""
    both = set(given.capability) & set(given.no_capability)
    if both:
        raise UsageError(
            f"Expected --capability or --no-capability for {min(both)!r}, got both. Take one out."
        )
    if given.reference is not None:
        check_reference(given.reference)
    expected: dict[str, str] = {}
    try:
        if given.expected_failures is not None:
            expected = expected_failures(given.expected_failures)
    except (ValueError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None
    said = {option.name: getattr(given, option.name, None) for option in fields(Options)}
    # Those that have another form on the command line.
    said |= {
        "only": tuple(given.only),
        "skip": tuple(given.skip),
        "expected_failures": expected,
        "isolate": not given.no_isolate,
        "capabilities": {
            **dict.fromkeys(given.capability, True),
            **dict.fromkeys(given.no_capability, False),
        },
        "options": given.reset_options,
        "reference": None,  # a name, which may be imported after all else has been judged
    }
    return Options(**{name: value for name, value in said.items() if value is not None})


def _for_target(options: Options, given: Namespace, target: Target) -> Options:
    """The options with the single environments, and the source code for reproductions."""
    singles = target.singles
    if given.reference is not None:
        singles = resolve_reference(given.reference)
    if singles is None:
        return replace(options, make_env=target.source)
    reference, source = singles
    return replace(options, make_env=f"{target.source}\n\n{source}", reference=reference)


def _show(report: Report, given: Namespace) -> None:
    if _is_brief(given):
        print(brief(report))
    elif given.format == "terminal":
        # Imported here, as rich is not needed for the other formats.
        from sb3compat.conformance.output.terminal import show

        show(report, sys.stdout, verbose=given.verbose)
    else:
        print(render(report, given.format), end="")


def _is_brief(given: Namespace) -> bool:
    return bool(given.quiet and given.format == "terminal")
