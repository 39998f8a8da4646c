"""Copies of an environment with workers are refused, in both directions."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

from sb3compat import to_gymnasium, to_sb3
from tests.envs import Identity, fns
from tests.lockstep_back import subproc
from tests.vec_wrappers import HandsOn

DUPLICATES = (copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps)
WITH_WORKERS: dict[str, Callable[[], Any]] = {
    "async": lambda: to_sb3(AsyncVectorEnv(fns())),
    "wrapped async": lambda: to_sb3(Identity(AsyncVectorEnv(fns()))),
    "subproc": lambda: to_gymnasium(subproc(fns())),
    "wrapped subproc": lambda: to_gymnasium(HandsOn(subproc(fns()))),
    "async and back": lambda: to_gymnasium(HandsOn(to_sb3(AsyncVectorEnv(fns())))),
}


@pytest.mark.parametrize("name", WITH_WORKERS)
def test_environment_with_workers_cannot_be_copied(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A copy's pipes, once dropped, would close those of the original."""
    env = WITH_WORKERS[name]()
    env.reset()
    # A shallow copy of the last one shares the environment inside.
    for duplicate in DUPLICATES[name == "async and back" :]:
        with pytest.raises(TypeError, match="without worker processes, to copy or pickle, got"):
            duplicate(env)
    gc.collect()
    assert len(env.step(np.zeros(2, int))[0]) == 2
    env.close()
    assert capfd.readouterr().err == ""
