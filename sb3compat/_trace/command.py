"""`sb3compat trace`; `sb3compat.cli` has its arguments."""

from __future__ import annotations

import sys
import traceback
from argparse import Namespace
from pathlib import Path
from typing import Any

from sb3compat._trace.trace import trace
from sb3compat.conformance.commands.check import complain_of
from sb3compat.conformance.commands.targets import making_of, resolve
from sb3compat.conformance.commands.usage import UsageError, complain, write
from sb3compat.conformance.program.trace import trace_of
from sb3compat.errors import ConversionError

_PACKAGE = str(Path(__file__).parents[1])


def command(given: Namespace) -> int:
    """Trace an environment, and print what each API sees.

    Args:
        given: The arguments.

    Returns:
        0 if nothing looks wrong, 1 if something does, 2 if the target cannot be made or traced.
    """
    for path in filter(None, (given.svg, given.html)):
        if path.is_dir() or not path.parent.is_dir():
            return complain(
                "Expected the path of a file in a folder that exists, got "
                f"{str(path)!r}. Make the folder, or name another one."
            )
    unmade: list[Exception] = []

    def make_env() -> Any:
        try:
            return target.factory()
        except Exception as error:
            unmade.append(error)
            raise

    try:
        target = resolve(given.target, making_of(given))
    except UsageError as error:
        return complain(str(error))
    except Exception as error:
        return complain_of(given.target, error, given.env_kwargs)
    try:
        found = trace(
            make_env,
            episodes=given.episodes,
            seed=given.seed,
            rows=given.rows,
            max_steps=given.max_steps,
        )
    except Exception as error:
        if unmade:
            return complain_of(given.target, error, given.env_kwargs)
        if isinstance(error, ConversionError) or _is_own(error):
            return complain(str(error))
        print(trace_of(error), file=sys.stderr, end="")
        return complain(f"{given.target} cannot be traced, see above.")
    # Before printing, as the reader of the output may stop at any line (`| head`).
    try:
        for path, text in ((given.svg, found.svg), (given.html, found.html)):
            if path:
                write(path, text())
    except UsageError as error:
        return complain(str(error))
    try:
        found.show()
    except SystemExit:  # what rich makes of a pipe that is closed
        raise BrokenPipeError from None
    return 1 if found.marks else 0


def _is_own(error: Exception) -> bool:
    """Whether it is about an argument or a result, and not raised by the environment."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, ValueError) and all(f.filename.startswith(_PACKAGE) for f in frames)
