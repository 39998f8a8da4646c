"""The exceptions of sb3compat: each says what was expected, what came, and what to do."""

from __future__ import annotations


class ConversionError(ValueError):
    """An environment, or something that it returned, cannot be presented exactly.

    The base of every refusal of this package. Refusing is the point: a transition that is only
    nearly right trains without any error.
    """


class UnsupportedEnvError(ConversionError, TypeError):
    """What was passed is not a vector environment, or not one that can be adapted."""


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


class WorkerError(RuntimeError):
    """A worker process of an `AsyncVectorEnv` died, or was lost by an earlier error."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """A worker process of an `AsyncVectorEnv` has not answered in time."""
