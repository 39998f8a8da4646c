"""The workers of Gymnasium and SB3 answer as `_upstream` expects: asked for real, by raw messages.

Where one of these fails, look at the worker's loop in the installed library, then at
`_ipc/async_vector_env.py` or `_ipc/subproc_vec_env.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from sb3compat._ipc import async_vector_env as workers
from sb3compat._upstream.private import private
from tests.envs import ScriptedEnv, script

LOOK = "look at gymnasium.vector.async_vector_env._async_worker and _ipc/async_vector_env.py"
LOOK_SB3 = "look at stable_baselines3's subproc_vec_env._worker and _ipc/subproc_vec_env.py"


class Failing(ScriptedEnv):
    def render(self) -> Any:
        raise KeyError("no frame")


def make(length: int = 2) -> Any:
    return Failing(script(lengths=(length,), infos="none"))


@pytest.fixture(params=list(AutoresetMode), ids=lambda mode: mode.name)
def mode(request: Any) -> Any:
    return request.param


@pytest.fixture(params=[True, False], ids=["shared", "piped"])
def envs(request: Any, mode: AutoresetMode) -> Iterator[Any]:
    envs = AsyncVectorEnv([make] * 2, shared_memory=request.param, autoreset_mode=mode)
    yield envs
    if not envs.closed:
        envs.close(terminate=True)


def asked(envs: Any, command: str, data: Any) -> Any:
    """What the first worker answers."""
    pipe = private(envs, "parent_pipes")[0]
    pipe.send((command, data))
    return pipe.recv()


def test_answers_of_gymnasiums_worker(envs: Any, mode: AutoresetMode) -> None:
    def is_place(observation: Any) -> bool:
        return (observation is None) == bool(envs.shared_memory)

    (observation, info), success = asked(envs, "reset", {"seed": 3, "options": None})
    assert success is True, LOOK
    assert is_place(observation), LOOK
    assert info["seed"] == 3, LOOK
    for time in (1, 2):
        answer, success = asked(envs, "step", 0)
        observation, reward, terminated, truncated, info = answer
        assert success is True, LOOK
        assert is_place(observation) or time == 2, LOOK
        assert reward == 0.1 * time, LOOK
        assert (bool(terminated), bool(truncated)) == (time == 2, False), LOOK
        if time == 2 and mode == AutoresetMode.SAME_STEP:
            assert envs.single_observation_space.contains(info["final_obs"]), LOOK
            assert info["final_info"]["shared"] == 2, LOOK
            assert info["resets"] == 2, LOOK
        else:
            assert info["shared"] == time, LOOK
    if mode == AutoresetMode.NEXT_STEP:
        (observation, reward, terminated, truncated, info), success = asked(envs, "step", None)
        assert (success, reward, terminated, truncated) == (True, 0, False, False), LOOK
        assert info["resets"] == 2, LOOK
    assert asked(envs, "_call", ("set_mu", (2.0,), {})) == (2.0, True), LOOK
    assert asked(envs, "_call", ("mu", (), {})) == (2.0, True), LOOK


def test_error_of_gymnasiums_worker(envs: Any) -> None:
    assert asked(envs, "_call", ("render", (), {})) == (None, False), LOOK
    index, kind, value, trace = private(envs, "error_queue").get()
    assert (index, kind) == (0, KeyError), LOOK
    assert isinstance(value, KeyError), LOOK
    assert "in render" in trace, LOOK


def test_pending_autoreset_can_be_asked(envs: Any, mode: AutoresetMode) -> None:
    envs.reset()
    assert workers.lingering_autoresets(envs, [0, 1]) == []
    envs.step(np.zeros(2, np.int64))
    envs.step(np.zeros(2, np.int64))
    lingers = mode == AutoresetMode.NEXT_STEP and not envs.shared_memory
    assert workers.lingering_autoresets(envs, [1, 0]) == ([1, 0] if lingers else []), LOOK
    assert envs.call("mu") == (0.5, 0.5)


def test_state_while_a_step_is_under_way(envs: Any) -> None:
    envs.reset()
    envs.step_async(np.zeros(2, np.int64))
    assert workers.is_stepping(envs), LOOK
    with pytest.raises(RuntimeError, match="pending 'step'"):
        workers.check_ready(envs)
    envs.step_wait()
    assert not workers.is_stepping(envs), LOOK


def test_answers_of_sb3s_worker() -> None:
    subproc = pytest.importorskip("stable_baselines3.common.vec_env").SubprocVecEnv
    envs = subproc([make], start_method="fork")
    try:
        (remote,), (process,) = private(envs, "remotes"), private(envs, "processes")
        assert private(envs, "waiting") is False, LOOK_SB3
        assert private(envs, "closed") is False, LOOK_SB3
        for command, data, answer in (
            ("set_attr", ("planted", len), None),
            ("env_method", ("planted", ("four",), {}), 4),
            ("env_method", ("set_mu", (), {"mu": 2.0}), 2.0),
            ("env_method", ("get_wrapper_attr", ("mu",), {}), 2.0),
        ):
            remote.send((command, data))
            assert remote.recv() == answer, LOOK_SB3
        envs.reset()
        envs.step_async([0])
        assert private(envs, "waiting") is True, LOOK_SB3
        envs.step_wait()
        remote.send(("close", None))
        process.join()
        assert process.exitcode == 0, LOOK_SB3
    finally:
        envs.processes[0].terminate()
        envs.waiting, envs.closed = False, True
