"""The table of everything private in other libraries that this package relies on.

Private is what no documentation promises, also where it has no underscore. `canary.missing` looks
each entry up in what is installed; `sb3compat versions` prints what it does not find. Whoever makes
use of another private name adds it here: a test compares.
"""

from __future__ import annotations

from sb3compat._upstream.table.backends import BACKENDS
from sb3compat._upstream.table.cpython import CPYTHON
from sb3compat._upstream.table.entry import Kind, Name
from sb3compat._upstream.table.gymnasium import (
    ASYNC_VECTOR_ENV,
    VECTOR_ENVS,
    WRAPPERS_AND_NATIVE,
)
from sb3compat._upstream.table.sb3 import STABLE_BASELINES3

NAMES: tuple[Name, ...] = (
    *VECTOR_ENVS,
    *ASYNC_VECTOR_ENV,
    *WRAPPERS_AND_NATIVE,
    *STABLE_BASELINES3,
    *BACKENDS,
    *CPYTHON,
)

__all__ = ["NAMES", "Kind", "Name"]
