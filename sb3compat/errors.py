"""The exceptions of sb3compat: each says what was expected, what was given, and what to do."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import FrameType

from gymnasium.error import (
    ClosedEnvironmentError,
    Error,
    NameNotFound,
    NamespaceNotFound,
    ResetNeeded,
)

# The page that has a section for each of these exceptions, in the repository.
_PAGE = "docs/reference/errors.md"


class _DocumentedError(Exception):
    """Adds a note to the exception, which tracebacks show: where its cause and remedy are.

    A note leaves `str(error)` as it is. Python 3.10 has none.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if sys.version_info >= (3, 11) and (page := page_of_errors()):
            # A class of another module is described with the one that it derives from.
            described = next(cls for cls in type(self).__mro__ if cls.__module__ == __name__)
            self.add_note(f"Cause and remedy: {page}#{described.__name__.lower()}")


@cache
def page_of_errors() -> str | None:
    """Where the page about errors is: in the clone, or the address that a release names.

    Returns:
        None for a wheel that was built without the address of the repository.
    """
    page = Path(__file__).parents[1] / _PAGE
    if page.is_file():
        return str(page)
    from importlib import metadata

    try:
        addresses = metadata.metadata("sb3compat").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    named = dict(address.split(", ", 1) for address in addresses)
    return named.get("Errors")


class ConversionError(_DocumentedError, ValueError):
    """An environment, or a value that it returned, cannot be presented exactly.

    The base class of all exceptions by which this package refuses an environment or a value. It
    refuses instead of approximating, because training on slightly wrong transitions raises no
    error.
    """


class UnsupportedEnvError(ConversionError, TypeError):
    """The object is not a vector environment, or this vector environment cannot be adapted."""


class UnsupportedSpaceError(ConversionError, NotImplementedError):
    """Stable-Baselines3 has no way to batch this space, or the rows have different spaces.

    Also a `NotImplementedError`, which is what SB3's own `DummyVecEnv` raises for nested spaces.
    """


class AutoresetModeError(ConversionError):
    """The autoreset mode is unknown, or contradicts what the environment does."""


class PartialResetError(ConversionError):
    """An environment has no way to reset some of its rows, or a reset of some rows went wrong."""


class MissingFinalObservationError(ConversionError):
    """An episode ended, and the environment did not return its last observation."""


class MissingTruncationError(ConversionError):
    """An episode ended, and the `VecEnv` did not say whether it was truncated."""


class ResetArgumentError(ConversionError, TypeError, AssertionError, Error):
    """A reset mask, seeds or options are not valid. Raised by environments of `to_gymnasium`.

    Also what Gymnasium raises: for a mask, 1.4 raises a `TypeError` or `ValueError`, depending on
    the rule, and older versions an `AssertionError`; for a seed that is no integer, an `Error`.
    """


class ActionsError(ConversionError, TypeError, KeyError, IndexError):
    """The number or form of the actions does not match the rows and the space. Nothing was stepped.

    Also what Gymnasium's `SyncVectorEnv` raises, which depends on the mistake: a `TypeError` for
    one action alone, a `ValueError` for too few, a `KeyError` or `IndexError` for a missing part.
    Raised by environments of `to_gymnasium`; a `VecEnv` of this package raises a `ValueError`.
    """

    # KeyError shows its argument as repr() does.
    __str__ = ConversionError.__str__


class EndedRowError(_DocumentedError, RuntimeError, AssertionError):
    """A row whose episode has ended was stepped in DISABLED mode, where nothing resets it.

    Also an `AssertionError`, which is what Gymnasium's `SyncVectorEnv` raises.
    """


class ClosedError(_DocumentedError, RuntimeError, ClosedEnvironmentError):
    """A closed environment was used. Also Gymnasium's `ClosedEnvironmentError`."""


class WorkerError(_DocumentedError, RuntimeError):
    """A worker process or actor died, or an earlier error or interrupt has stopped it."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """A worker has not answered within `timeout` seconds."""


class CallOrderError(_DocumentedError, RuntimeError, ResetNeeded):
    """Methods were called in the wrong order, such as `step` before `reset`, or within each other.

    Also Gymnasium's `ResetNeeded`, which Gymnasium's single environments raise in that case.
    """


# The packages that are skipped when a warning looks for the user's line.
_BETWEEN = ("sb3compat", "gymnasium", "stable_baselines3")
# How much of a value a message shows.
_SHOWN = 200


def shown(value: object) -> str:
    """The repr of a value, for messages; where it is cut off, it ends with "…"."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def nearest(
    name: object, known: Iterable[object], otherwise: str = "", likeness: float = 0.6
) -> str:
    """A question that suggests a similar known name, for the end of a message.

    Args:
        name: What was given.
        known: The names that there are; those that are no strings are left out.
        otherwise: What to say where no name is similar.
        likeness: The smallest share of equal letters of a similar name; 1 means equal names only.
    """
    names = {other.casefold(): other for other in known if isinstance(other, str)}
    found: list[str] = []
    if isinstance(name, str) and name:
        asked = name.casefold()
        found = get_close_matches(asked, names, n=1, cutoff=likeness)
        # Two letters are a part of too many names.
        found = found or [other for other in names if len(asked) > 2 and asked in other]
    return f" Did you mean {names[found[0]]!r}?" if found else otherwise and f" {otherwise}"


def cannot_be_made(env_id: object, error: Exception) -> str:
    """What was raised while an environment was made, and what to do if its id is unknown.

    Args:
        env_id: The id, or a function that makes the environment.
        error: What was raised.
    """
    text = f"{type(error).__name__}: {error}"
    unknown = isinstance(error, NameNotFound | NamespaceNotFound) and "Did you mean" not in text
    if not isinstance(env_id, str) or ":" in env_id or not unknown:
        return text
    if re.search(r"-v\d+$", env_id):
        return f"{text} Write the id with the module that registers it: my_module:{env_id}"
    return f"{text} To name a function, write my_module:make_env or path/to/file.py:make_env"


def warn(message: str | Warning) -> None:
    """Warn, and point at the line of the user's code that has called this package.

    The call may have passed through Gymnasium and SB3, from whose classes ours derive. Python 3.12
    has `skip_file_prefixes` for this.
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and _is_between(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _is_between(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN


def traceback_in_worker(where: str, trace: str) -> WorkerError:
    """The cause of an exception that came from a worker. The worker itself is not at fault.

    Args:
        where: What the worker was busy with, such as "row 3".
        trace: The traceback there.
    """
    cause = WorkerError(f"in the worker of {where}:\n{trace}")
    vars(cause).pop("__notes__", None)
    return cause


def was_closed(env: object) -> ClosedError:
    """The error for the use of a closed environment."""
    return ClosedError(f"Expected an open environment, but {env} was closed. Make a new one.")


def cannot_copy(env: object) -> TypeError:
    """The error for copying or pickling an environment that has workers, or a wrapper of SB3.

    A copy of a pipe would close the pipe of the original.
    """
    return TypeError(
        "Expected an environment without SB3's wrappers, and without worker processes, to copy or "
        f"pickle, got {env}. Make another one in the same way instead."
    )


class UpstreamError(_DocumentedError, RuntimeError):
    """An installed library lacks a private name that this package relies on.

    `sb3compat versions` lists the names that are missing.
    """


def too_old(what: str) -> str:
    """The message if Gymnasium is too old for this part of the package; empty if it is not.

    Args:
        what: The part.
    """
    import gymnasium

    if hasattr(gymnasium.vector, "AutoresetMode"):
        return ""
    return (
        f"Expected Gymnasium 1.1 or newer for {what}, got Gymnasium {gymnasium.__version__}: "
        "pip install 'gymnasium>=1.1'. With an older one only sb3compat.conformance can be used, "
        "to check a VecEnv."
    )


def install_line(extra: str) -> str:
    """The command that adds an extra to the installation at hand, for messages.

    pip uses the installed sb3compat, from whatever place it was installed, to find its extras. The
    package need not be on an index.
    """
    return f'pip install "sb3compat[{extra}]"'
