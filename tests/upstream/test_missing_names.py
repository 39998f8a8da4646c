"""A private name that is missing raises an error that names it and the version; nothing is assumed.

The names are taken away for real: from instances, by subclasses, and by workers of our own.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from sb3compat._ipc import worker_locals
from sb3compat._upstream import cartpole, sync_vector_env, vector_env
from sb3compat._upstream.private import installed, missing, private
from sb3compat.errors import UpstreamError
from tests.envs import GYMNASIUM, ScriptedEnv, script

GYM = rf"gymnasium {gym.__version__}".replace(".", r"\.")


def make(length: int = 2) -> Any:
    return ScriptedEnv(script(lengths=(length,), infos="none"))


def lacks(name: str, library: str = GYM) -> Any:
    return pytest.raises(UpstreamError, match=rf"'{name}'(.|\n)*{library}(.|\n)*sb3compat versions")


# --- reading ---------------------------------------------------------------------------------


def test_name_that_is_there_is_read() -> None:
    assert private(pickle, "_Unpickler") is pickle._Unpickler  # type: ignore[attr-defined]


class MyEnv(SyncVectorEnv):
    """A user's own class."""


@pytest.mark.parametrize(
    ("owner", "named", "library"),
    [
        (pickle, "pickle", f"Python {sys.version.split()[0]}"),
        (SyncVectorEnv, "gymnasium.vector.sync_vector_env.SyncVectorEnv", "gymnasium 1."),
        (MyEnv([make]), "gymnasium.vector.sync_vector_env.SyncVectorEnv", "gymnasium 1."),
        (gym.vector, "gymnasium.vector", "gymnasium 1."),
        (test_name_that_is_there_is_read, "builtins.function", "Python"),
    ],
)
def test_missing_name_is_told_with_the_library_that_should_have_it(
    owner: object, named: str, library: str
) -> None:
    with pytest.raises(UpstreamError) as caught:
        private(owner, "_gone")
    assert f"Expected '_gone' of {named}, a private name of {library}" in str(caught.value)


def test_library_that_is_not_installed_has_no_version() -> None:
    assert installed("no_such_library") == "no_such_library"

    class Own: ...

    assert "a private name of tests that" in str(missing("x", Own))


# --- Gymnasium -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_env_obs", "_autoreset_envs"])
def test_reset_of_a_sync_vector_env(name: str) -> None:
    env = SyncVectorEnv([make] * 2)
    vec_env = sb3compat.to_sb3(env)
    vec_env.reset()
    delattr(env, name)
    with lacks(name):
        vec_env.reset()


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("_terminations", lambda env: sync_vector_env.forget_endings(env, [0])),
        ("_truncations", lambda env: sync_vector_env.forget_endings(env, [0])),
        ("_autoreset_envs", lambda env: sync_vector_env.forget_endings(env, [0])),
        ("_observations", sync_vector_env.shared_batch),
    ],
)
def test_masked_reset_of_a_sync_vector_env(name: str, use: Callable[[Any], Any]) -> None:
    env = SyncVectorEnv([make] * 2)
    delattr(env, name)
    with lacks(name):
        use(env)


def without(cls: type, name: str) -> Any:
    """A subclass that lacks a name."""

    def getter(self: Any) -> Any:
        raise AttributeError(name)

    return type(f"Lacks{name}", (cls,), {name: property(getter)})


def test_batching_of_infos() -> None:
    env = without(SyncVectorEnv, "_add_info")([make])
    with lacks("_add_info"):
        sync_vector_env.add_info(env, {}, {"x": 1}, 0)


@pytest.mark.parametrize("name", ["_np_random", "_np_random_seed"])
def test_generator_of_a_vector_env(name: str) -> None:
    env = without(gym.vector.VectorEnv, name)()
    with lacks(name):
        vector_env.set_generator(env, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["state", "steps", "prev_done"])
def test_partial_reset_of_cartpole(name: str) -> None:
    env: Any = gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    delattr(env, name)
    with lacks(name):
        cartpole.reset_rows(env, np.array([True, False]))
    env.close()


@pytest.mark.jax
@pytest.mark.parametrize("name", ["rng", "state", "steps", "prev_done", "func_env"])
def test_partial_reset_of_a_functional_jax_env(name: str) -> None:
    pytest.importorskip("jax")
    from sb3compat._upstream import functional_jax_env

    env: Any = gym.make_vec(
        "phys2d/CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point"
    )
    env.reset(seed=0)
    delattr(env, name)
    with lacks(name):
        functional_jax_env.reset_rows(env, np.array([True, False]), seed=3)


@pytest.mark.jax
def test_pending_autoreset_of_a_functional_jax_env() -> None:
    pytest.importorskip("jax")
    from sb3compat._upstream import functional_jax_env

    env: Any = gym.make_vec(
        "phys2d/CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point"
    )
    del env.prev_done
    with lacks("prev_done"):
        functional_jax_env.clear_pending(env)


@pytest.mark.skipif(GYMNASIUM < (1, 4), reason="not looked for in older versions")
def test_mode_that_a_wrapper_remembers() -> None:
    env = RecordEpisodeStatistics(SyncVectorEnv([make]))
    del env._autoreset_mode
    with lacks("_autoreset_mode"):
        sb3compat.to_sb3(env)


# --- workers of Gymnasium --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["_state", "parent_pipes", "processes"])
def test_reset_of_an_async_vector_env(name: str) -> None:
    env = AsyncVectorEnv([make] * 2)
    vec_env = sb3compat.to_sb3(env)
    vec_env.reset()
    held = getattr(env, name)
    delattr(env, name)
    with lacks(name):
        vec_env.reset()
    setattr(env, name, held)
    env.close(terminate=True)


def test_error_of_an_async_vector_env() -> None:
    env = AsyncVectorEnv([make] * 2)
    vec_env = sb3compat.to_sb3(env)
    vec_env.reset()
    del env.error_queue
    with lacks("error_queue"):
        vec_env.env_method("fail")
    env.close(terminate=True)


def answer(pipe: Any, env: Any, command: str, data: Any) -> None:
    """What Gymnasium's worker does at the commands that do not reset."""
    if command == "_call":
        name, args, kwargs = data
        value = env.get_wrapper_attr(name)
        pipe.send((value(*args, **kwargs) if callable(value) else value, True))
    elif command == "_check_spaces":
        pipe.send(((True, True), True))
    else:
        pipe.send((None, True))


def worker_with_another_flag(
    index: int, env_fn: Any, pipe: Any, parent: Any, shared: Any, errors: Any, *rest: Any
) -> None:
    """Gymnasium's in NEXT_STEP mode, without shared memory; `autoreset` is called `pending`."""
    env, pending, command = env_fn(), False, ""
    parent.close()
    try:
        while command != "close":
            command, data = pipe.recv()
            if command == "reset":
                pipe.send((env.reset(**data), True))
            elif command == "step" and pending:
                observation, info = env.reset()
                pending = False
                pipe.send(((observation, 0, False, False, info), True))
            elif command == "step":
                result = env.step(data)
                pending = result[2] or result[3]
                pipe.send((result, True))
            else:
                answer(pipe, env, command, data)
    except Exception as error:
        errors.put((index, type(error), str(error), "no trace"))
        pipe.send((None, False))


def worker_with_another_env(
    index: int, env_fn: Any, pipe: Any, parent: Any, shared: Any, errors: Any, *rest: Any
) -> None:
    """One whose environment is called `single`."""
    single, command = env_fn(), ""
    parent.close()
    try:
        while command != "close":
            command, data = pipe.recv()
            answer(pipe, single, command, data) if command else None
    except Exception as error:
        errors.put((index, type(error), str(error), "no trace"))
        pipe.send((None, False))


def test_worker_without_the_flag_of_its_autoreset() -> None:
    env = AsyncVectorEnv(
        [make] * 2,
        shared_memory=False,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        worker=worker_with_another_flag,
    )
    vec_env = sb3compat.to_sb3(env)
    # Taken for False, the flag would let the worker reset twice after the first episode.
    with pytest.raises(UpstreamError, match=rf"'autoreset' in the custom worker.*{GYM}"):
        vec_env.reset()
    env.close(terminate=True)


def test_frames_of_the_parent_are_not_those_of_its_forked_worker() -> None:
    env: Any = gym.wrappers.TimeLimit(make(), 5)  # in a frame that the worker inherits
    envs = AsyncVectorEnv([make], context="fork", worker=worker_with_another_env)
    vec_env = sb3compat.to_sb3(RecordEpisodeStatistics(envs), autoreset_mode=None)
    with pytest.raises(UpstreamError, match=rf"'env' in the custom worker.*{GYM}"):
        vec_env.env_is_wrapped(gym.wrappers.TimeLimit)
    envs.close(terminate=True)
    env.close()


def test_questions_outside_of_a_worker() -> None:
    env = make()
    with pytest.raises(UpstreamError, match=r"in a worker process.*sb3compat versions"):
        worker_locals.env_of_worker()
    env.close()
