"""`sb3compat trace`; `sb3compat.cli` has its arguments."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gymnasium.error import Error as GymnasiumError

from sb3compat._trace.trace import trace
from sb3compat.errors import ConversionError


def command(given: Namespace, make_env: Callable[[], Any]) -> int:
    """Trace an environment, and print what each API sees.

    Args:
        given: The arguments.
        make_env: The function that makes the environment.

    Returns:
        0 if nothing looks wrong, 1 if something does, 2 if the target cannot be made.
    """
    for path in filter(None, (given.svg, given.html)):
        if path.is_dir() or not path.parent.is_dir():
            return _complain(
                "Expected the path of a file in a folder that exists, got "
                f"{str(path)!r}. Make the folder, or name another one."
            )
    try:
        found = trace(
            make_env,
            episodes=given.episodes,
            seed=given.seed,
            rows=given.rows,
            max_steps=given.max_steps,
        )
    except (ConversionError, ValueError) as error:
        return _complain(str(error))
    except GymnasiumError as error:
        return _complain(f"{given.target!r} cannot be made: {type(error).__name__}: {error}")
    # Before printing, as the reader of the output may stop at any line (`| head`).
    if given.svg:
        _write(given.svg, found.svg())
    if given.html:
        _write(given.html, found.html())
    try:
        found.show()
    except SystemExit:  # what rich makes of a pipe that is closed
        raise BrokenPipeError from None
    return 1 if found.marks else 0


def _complain(message: str) -> int:
    print(f"sb3compat: {message}", file=sys.stderr)
    return 2


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
