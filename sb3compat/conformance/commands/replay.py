"""`sb3compat replay`: run the reproductions of a report again."""

from __future__ import annotations

import os
import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from sb3compat.conformance.commands.targets import making_of, resolve
from sb3compat.conformance.commands.usage import CLEAN, FAILED, WRONG_USE, UsageError, complain
from sb3compat.conformance.output.json import load
from sb3compat.conformance.program.source import PLACEHOLDER
from sb3compat.conformance.run.child import factory_trace
from sb3compat.conformance.run.fresh import Rerun, Verdict, expected_of, rerun

_VERDICTS: dict[Verdict, str] = {
    "fails": "still failing",
    "passes": "passing now",
    "other": "failing otherwise",
    "unable": "not run",
}
_PASS = "Pass a report that `sb3compat check --json` wrote, or a script."


def replay(path: Path, make_env: str | None, seconds: float) -> Iterator[tuple[str, Rerun]]:
    """Run each reproduction in a Python of its own: the id of the check, or the file, and the end.

    Args:
        path: A report as JSON, or one reproduction.
        make_env: Source that defines `make_env` where a reproduction has a placeholder.
        seconds: The time limit for each.

    Raises:
        ValueError: If the file is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"There is no file {str(path)!r}. {_PASS}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
        raise ValueError(
            f"Expected a report as JSON or a script, got {str(path)!r}: {why}. {_PASS}"
        ) from None
    if path.suffix == ".py":
        yield path.name, _run(text, "AssertionError", make_env, seconds)
        return
    for result in load(text).results:
        if result.reproduction:
            expected = expected_of(result)
            yield result.check_id, _run(result.reproduction, expected, make_env, seconds)
        elif result.status in ("failed", "errored", "xfailed"):
            yield result.check_id, Rerun("unable", f"has no reproduction: {result.message}")


def _run(script: str, expected: str, make_env: str | None, seconds: float) -> Rerun:
    """Run a script, and see whether it raises an exception whose type is in `expected`."""
    if PLACEHOLDER in script:
        if make_env is None:
            return Rerun(
                "unable", "does not know the factory. Name it: --target package.module:name"
            )
        script = script.replace(PLACEHOLDER, make_env)
    path = filter(None, [os.getcwd(), os.environ.get("PYTHONPATH", "")])
    return rerun(script, expected, seconds, path)


def command(given: Namespace) -> int:
    """Run the reproductions again, and say which still fail."""
    verdicts: list[Verdict] = []
    source = None
    try:
        if given.target is not None:
            source = resolve(given.target, making_of(given)).source
    except UsageError as error:
        return complain(str(error))
    except Exception as error:
        print(factory_trace(error), file=sys.stderr)
        return complain(f"{given.target} cannot be imported, see above.")
    try:
        for name, found in replay(given.file, source, given.max_seconds):
            verdicts.append(found.verdict)
            said = textwrap.indent(found.said, "    ")
            print(f"{_VERDICTS[found.verdict]}: {name}", *filter(None, [said]), sep="\n")
    except ValueError as error:
        return complain(str(error))
    counts = [
        f"{verdicts.count(verdict)} {words}"
        for verdict, words in _VERDICTS.items()
        if verdict in verdicts
    ]
    print(", ".join(counts) or "There is nothing to run: no result has a reproduction.")
    if "unable" in verdicts:
        return WRONG_USE
    return CLEAN if set(verdicts) <= {"passes"} else FAILED
