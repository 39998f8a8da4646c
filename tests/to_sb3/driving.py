"""The environments that the tests adapt, by the way that they are driven, and what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from tests.envs import Identity
from tests.lockstep import Operation

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
DISABLED = AutoresetMode.DISABLED
MODES = list(AutoresetMode)
mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
class_of = pytest.mark.parametrize("cls", [SyncVectorEnv, AsyncVectorEnv])

# Of single environments: what makes the vector environment, its arguments, and its wrapper.
SOURCES: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[[Any], Any]]] = {
    "sync": (SyncVectorEnv, {}, lambda env: env),
    "sync wrapped": (SyncVectorEnv, {}, Identity),
    "async": (AsyncVectorEnv, {}, lambda env: env),
    "async unshared": (AsyncVectorEnv, {"shared_memory": False}, lambda env: env),
    "async wrapped": (AsyncVectorEnv, {}, Identity),
}
ASYNC = [name for name in SOURCES if name.startswith("async")]


def made(name: str, fns: Sequence[Any], mode: AutoresetMode = NEXT_STEP, **kwargs: Any) -> Any:
    """The source of that name, of these functions."""
    make, own, wrap = SOURCES[name]
    return wrap(make(fns, autoreset_mode=mode, **own, **kwargs))


def step(env: Any, action: int = 0) -> Any:
    """A step with one action for all rows."""
    return env.step(np.full(env.num_envs, action))


def uniform(program: list[Operation]) -> list[Operation]:
    """The program with the options of the first row for all, as native environments need it."""
    return [(name, value[0] if isinstance(value, list) else value) for name, value in program]
