"""The exceptions of sb3compat: each says what was expected, what came, and what to do."""

from __future__ import annotations

from gymnasium.error import ClosedEnvironmentError, Error, ResetNeeded


class ConversionError(ValueError):
    """An environment, or a value that it returned, cannot be presented exactly.

    The base class of every refusal of this package. The package refuses instead of approximating:
    training on a transition that is only nearly right raises no error.
    """


class UnsupportedEnvError(ConversionError, TypeError):
    """The object is not a vector environment, or this vector environment cannot be adapted."""


class UnsupportedSpaceError(ConversionError, NotImplementedError):
    """A space that Stable-Baselines3 has no way to batch.

    Also a `NotImplementedError`, which is what SB3's own `DummyVecEnv` raises for nested spaces.
    """


class AutoresetModeError(ConversionError):
    """The autoreset mode is unknown, or contradicts what the environment does."""


class PartialResetError(ConversionError):
    """A NEXT_STEP environment gives no way to reset some of its rows within a step."""


class MissingFinalObservationError(ConversionError):
    """An episode ended and the environment did not hand out its last observation."""


class MissingTruncationError(ConversionError):
    """An episode ended and the `VecEnv` did not say whether it was truncated."""


class ResetArgumentError(ConversionError, TypeError, AssertionError, Error):
    """A reset mask, seeds or options that are not valid.

    Also what Gymnasium raises: for a mask, 1.4 raises a `TypeError` or `ValueError`, depending on
    the rule, and older versions an `AssertionError`; for a seed that is no integer, an `Error`.
    """


class ActionsError(ConversionError, TypeError, KeyError, IndexError):
    """Actions of another form or number than the rows and the space have. Nothing was stepped.

    Also what Gymnasium's `SyncVectorEnv` raises, which depends on the mistake: a `TypeError` for
    one action alone, a `ValueError` for too few, a `KeyError` or `IndexError` for a missing part.
    """

    # KeyError shows its argument as repr() does.
    __str__ = ConversionError.__str__


class EndedRowError(RuntimeError, AssertionError):
    """A row whose episode has ended was stepped in DISABLED mode, where nothing resets it.

    Also an `AssertionError`, which is what Gymnasium's `SyncVectorEnv` raises.
    """


class ClosedError(RuntimeError, ClosedEnvironmentError):
    """A closed environment was used. Also Gymnasium's `ClosedEnvironmentError`."""


class WorkerError(RuntimeError):
    """A worker process died, or was lost by an earlier error."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """A worker process of an `AsyncVectorEnv` has not answered in time."""


class CallOrderError(RuntimeError, ResetNeeded):
    """Methods were called in the wrong order, such as `step` before `reset`.

    Also Gymnasium's `ResetNeeded`, which Gymnasium's single environments raise in that case.
    """


# How much of a value a message shows.
_SHOWN = 200


def shown(value: object) -> str:
    """The repr of a value, for messages; where it is cut off, it ends with "…"."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def refuse_first_step(error: BaseException) -> None:
    """Raise `CallOrderError` if the first step has failed because nothing was reset yet.

    Args:
        error: The exception of a step before the adapter's first reset. Gymnasium's wrapper
            raises `ResetNeeded` there; its native CartPole and the monitors, ours and SB3's, have
            other classes and a text of their own.

    Raises:
        CallOrderError: If `error` is such an exception.
    """
    if isinstance(error, ResetNeeded) or str(error).startswith(_RESET_TEXTS):
        raise CallOrderError("Expected reset() before the first step.") from error


def cannot_copy(env: object) -> TypeError:
    """The error to raise where an environment is to be copied or pickled that has workers.

    Copies of their pipes would close the pipes of the original.
    """
    return TypeError(
        f"Expected an environment without worker processes to copy or pickle, got {env}. Make "
        "another one in the same way instead."
    )


class UpstreamError(RuntimeError):
    """An installed library lacks a private name that this package relies on.

    `sb3compat versions` lists the names that are missing.
    """


def too_old(what: str) -> str:
    """What to say where Gymnasium is too old for this part of the package; empty where it is not.

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

    pip finds sb3compat installed, from wherever that was, and takes its extras from there: no
    index has to know it.
    """
    return f'pip install "sb3compat[{extra}]"'


_RESET_TEXTS = (
    "Call reset before using step method",
    "Expected reset() before step()",
    "Tried to step environment that needs reset",
)
