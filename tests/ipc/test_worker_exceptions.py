"""What an environment raises in a worker arrives, over each of the ways that there are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from gymnasium.vector import AsyncVectorEnv

import sb3compat
from sb3compat._ipc import async_vector_env
from tests.envs import Identity, ScriptedEnv, script
from tests.ipc.test_exceptions import KeywordError, OncePickledError, lost_error, with_state
from tests.lockstep_back import subproc

pytest.importorskip("stable_baselines3")


class MainError(Exception):
    """Of the main module, in the tests."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


NAMED = {
    "of the main module": lambda: MainError(1, 2),
    "keywords": lambda: KeywordError(row=3),
    "of the worker": lost_error,
}


class Raising(ScriptedEnv):
    def __init__(self) -> None:
        super().__init__(script(lengths=(9,), infos="none"))

    def raise_named(self, name: str) -> None:
        raise NAMED[name]()


def twice() -> Any:
    """Two adapters over one environment."""
    env = AsyncVectorEnv([Raising])
    sb3compat.to_sb3(env)
    return sb3compat.to_sb3(Identity(env))


WAYS: dict[str, Callable[[], Any]] = {
    "async, a fork": lambda: sb3compat.to_sb3(AsyncVectorEnv([Raising], context="fork")),
    "async, twice": twice,
    "back": lambda: sb3compat.to_gymnasium(subproc([Raising])),
    "workers": lambda: sb3compat.ParallelVecEnv([Raising], start_method="fork"),
}


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("async, a fork", "of the worker"),
        ("async, a fork", "of the main module"),
        ("async, twice", "keywords"),
        ("back", "of the worker"),
        ("back", "of the main module"),
        ("workers", "keywords"),
    ],
)
def test_exception_of_a_worker_arrives(
    way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MainError, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "MainError", MainError, raising=False)
    env = WAYS[way]()
    expected = NAMED[name]()
    lost = sys.modules.pop("only_in_the_worker", None)  # here
    with pytest.raises(sb3compat.WorkerError if lost else type(expected)) as caught:
        (env.call if way == "back" else env.env_method)("raise_named", name)
    text = str(caught.value)
    assert str(expected) in text if lost else text == str(expected)
    assert "in raise_named" in str(caught.value.__cause__)
    env.close()


def custom_worker(index: int, env_fn: Any, pipe: Any, parent: Any, *rest: Any) -> None:
    """Its queue of errors takes exceptions as they are; it answers a check of spaces and a call."""
    errors = rest[1]
    parent.close()
    pipe.recv()
    pipe.send(((True, True), True))
    pipe.recv()
    errors.put((index, OncePickledError, with_state(OncePickledError("x"), code=3), "its trace"))
    pipe.send((None, False))


def test_exception_that_cannot_be_unpickled_is_a_worker_error() -> None:
    env = AsyncVectorEnv([Raising], worker=custom_worker)
    with pytest.raises(sb3compat.WorkerError, match=r"row 0 has raised .* cannot be pickled"):
        async_vector_env.ask(env, {0: ("_call", ("x", (), {}))})
    async_vector_env.close(env)


def test_environment_itself_raises_what_was_raised() -> None:
    """Gymnasium reads its queue of errors as before, where its environment is used directly."""
    env = AsyncVectorEnv([Raising])
    sb3compat.to_sb3(env)
    with pytest.raises(KeywordError, match=r"^row 3$"):
        env.call("raise_named", "keywords")
    env.close(terminate=True)
