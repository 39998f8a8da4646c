"""What the workers of an `AsyncVectorEnv` are busy with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from sb3compat._ipc import async_vector_env as workers
from tests.envs import ScriptedEnv, script


def make(length: int = 2) -> Any:
    return ScriptedEnv(script(lengths=(length,), infos="none"))


@pytest.fixture(params=list(AutoresetMode), ids=lambda mode: mode.name)
def mode(request: Any) -> Any:
    return request.param


@pytest.fixture(params=[True, False], ids=["shared", "piped"])
def envs(request: Any, mode: AutoresetMode) -> Iterator[Any]:
    envs = AsyncVectorEnv([make] * 2, shared_memory=request.param, autoreset_mode=mode)
    yield envs
    if not envs.closed:
        envs.close(terminate=True)


def test_pending_autoreset_can_be_asked(envs: Any, mode: AutoresetMode) -> None:
    envs.reset()
    assert workers.lingering_autoresets(envs, [0, 1]) == []
    envs.step(np.zeros(2, np.int64))
    envs.step(np.zeros(2, np.int64))
    lingers = mode == AutoresetMode.NEXT_STEP and not envs.shared_memory
    assert workers.lingering_autoresets(envs, [1, 0]) == ([1, 0] if lingers else [])
    assert envs.call("mu") == (0.5, 0.5)


def test_state_while_a_step_is_under_way(envs: Any) -> None:
    envs.reset()
    envs.step_async(np.zeros(2, np.int64))
    assert workers.is_stepping(envs)
    with pytest.raises(RuntimeError, match="pending 'step'"):
        workers.check_ready(envs)
    envs.step_wait()
    assert not workers.is_stepping(envs)
