"""Presents Gymnasium's vector environments as Stable-Baselines3's, and the reverse, exactly.

Importing this package imports no other library. Names are resolved on first use, so that
Stable-Baselines3, and with it torch, is not imported before an environment is adapted. A worker
process that only unpickles an object of this package imports neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3compat._make.make import make_vec_env
    from sb3compat._parallel.adapter import ParallelVecEnv
    from sb3compat._parallel.worker_stats import WorkerStats
    from sb3compat._to_gymnasium.adapter import VectorEnvAdapter, to_gymnasium
    from sb3compat._to_sb3.adapter import VecEnvAdapter, to_sb3
    from sb3compat._to_sb3.partial_reset import register_partial_reset, reset_with_mask
    from sb3compat._trace.trace import Trace, trace
    from sb3compat.errors import (
        AutoresetModeError,
        ClosedError,
        ConversionError,
        EndedRowError,
        MissingFinalObservationError,
        MissingTruncationError,
        PartialResetError,
        ResetArgumentError,
        UnsupportedEnvError,
        UnsupportedSpaceError,
        WorkerError,
        WorkerTimeoutError,
    )

__version__ = "0.1.0"

__all__ = [
    "AutoresetModeError",
    "ClosedError",
    "ConversionError",
    "EndedRowError",
    "MissingFinalObservationError",
    "MissingTruncationError",
    "ParallelVecEnv",
    "PartialResetError",
    "ResetArgumentError",
    "Trace",
    "UnsupportedEnvError",
    "UnsupportedSpaceError",
    "VecEnvAdapter",
    "VectorEnvAdapter",
    "WorkerError",
    "WorkerStats",
    "WorkerTimeoutError",
    "__version__",
    "make_vec_env",
    "register_partial_reset",
    "reset_with_mask",
    "to_gymnasium",
    "to_sb3",
    "trace",
]

# Where the names are that are not in `errors`.
_HOME = {
    "ParallelVecEnv": "_parallel.adapter",
    "Trace": "_trace.trace",
    "VecEnvAdapter": "_to_sb3.adapter",
    "VectorEnvAdapter": "_to_gymnasium.adapter",
    "WorkerStats": "_parallel.worker_stats",
    "make_vec_env": "_make.make",
    "register_partial_reset": "_to_sb3.partial_reset",
    "reset_with_mask": "_to_sb3.partial_reset",
    "to_gymnasium": "_to_gymnasium.adapter",
    "to_sb3": "_to_sb3.adapter",
    "trace": "_trace.trace",
}


_OF_THE_KIT = {"check", "check_vec_env", "check_vector_env"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        kit = "; it is in sb3compat.conformance" if name in _OF_THE_KIT else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{kit}")
    try:
        value = getattr(import_module(f"{__name__}.{_HOME.get(name, 'errors')}"), name)
    except ImportError as error:
        from sb3compat.errors import too_old

        if complaint := too_old(f"sb3compat.{name}"):
            raise ImportError(complaint) from error
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
