"""A private name that is missing raises an error that names it and the version; nothing is assumed.

The names are taken away for real: from instances, by subclasses, and by a module that has moved.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._upstream import vec_env
from sb3compat._upstream.installed import installed, installed_version, release
from sb3compat._upstream.private import missing, private, set_private
from sb3compat.errors import UpstreamError
from tests.envs import fns

PYTHON = f"Python {sys.version.split()[0]}"


class MyEnv(SyncVectorEnv):
    """A user's own class."""


@pytest.mark.parametrize(
    ("owner", "named", "library"),
    [
        (pickle, "pickle", PYTHON),
        (gym.vector, "gymnasium.vector", f"gymnasium {gym.__version__}"),
        (SyncVectorEnv, "gymnasium.vector.sync_vector_env.SyncVectorEnv", "gymnasium 1."),
        (MyEnv(fns()), "gymnasium.vector.sync_vector_env.SyncVectorEnv", "gymnasium 1."),
        (release, "builtins.function", PYTHON),
    ],
)
def test_missing_name_is_told_with_the_library_that_should_have_it(
    owner: object, named: str, library: str
) -> None:
    for access in (private, lambda owner, name: set_private(owner, name, 1)):
        with pytest.raises(UpstreamError) as caught:
            access(owner, "_gone")
        assert f"Expected '_gone' of {named}, a private name of {library}" in str(caught.value)
        assert "Run `sb3compat versions`" in str(caught.value)
        assert not hasattr(owner, "_gone")


def test_libraries_and_their_versions() -> None:
    assert installed("gymnasium") == f"gymnasium {gym.__version__}"
    assert installed("multiprocessing") == PYTHON
    assert installed("no_such_library") == "no_such_library"
    assert installed_version("pickle") == sys.version.split()[0]
    assert installed_version("no_such_library") is None
    assert (release("1.10.0rc1"), release("2.13")) == ((1, 10), (2, 13))
    assert "a private name of tests that" in str(missing("x", type("Own", (), {})))


# What the modules of `_upstream/` do where a name is missing; the rest reads names like these.


def sb3_env(gone: str) -> Any:
    """A `DummyVecEnv` that lacks an attribute, which SB3 does not make anew."""
    env = pytest.importorskip("stable_baselines3.common.vec_env").DummyVecEnv(fns())
    vars(env).update({"_reset_seeds": lambda: None, "_reset_options": lambda: None})
    return lacking(env, gone)


def lacking(env: Any, name: str) -> Any:
    """An environment without an attribute, which may be one of its class."""
    vars(env).pop(name, None)
    if hasattr(env, name):
        gone = property(lambda self: object.__getattribute__(self, "_gone"))
        env.__class__ = type("Lacking", (type(env),), {name: gone})
    return env


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("_seeds", vec_env.waiting_seeds),
        ("_options", vec_env.waiting_options),
        ("_seeds", lambda env: vec_env.set_waiting_seeds(env, [1, 2])),
        ("_options", lambda env: vec_env.set_waiting_options(env, [{}, {}])),
        ("_reset_seeds", vec_env.forget_waiting),
        ("_reset_options", vec_env.forget_waiting),
        ("buf_infos", lambda env: vec_env.keeps_infos(env, "DummyVecEnv", "buf_infos")),
    ],
)
def test_state_of_a_vec_env(name: str, use: Callable[[Any], Any]) -> None:
    with pytest.raises(UpstreamError, match=f"'{name}'.*stable-baselines3 2"):
        use(sb3_env(name))


def test_module_that_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.vec_env")
    env = sb3.VecMonitor(sb3.DummyVecEnv(fns()))
    monkeypatch.delitem(sys.modules, sb3.__name__)
    with pytest.raises(UpstreamError, match=r"Expected 'common\.vec_env' of stable_baselines3"):
        sb3compat.to_gymnasium(env)
