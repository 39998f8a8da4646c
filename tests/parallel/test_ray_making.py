"""Ray actors that hang, fail or raise while they are made, replaced, used or closed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import sb3compat
from tests.interrupts import attempt, within
from tests.parallel.actors import ACTIONS, actors_of, known, on_ray, opened
from tests.parallel.known import Known

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("connected")]


class Hangs:
    """Makes a row, or hangs or fails while a file is there."""

    def __init__(self, path: Path, *, fails: bool = False) -> None:
        self.path, self.fails = path, fails

    def __call__(self) -> Any:
        while self.path.exists():
            if self.fails:
                raise ValueError("not now")
        return Known(4, "never")


@pytest.fixture
def flag(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "flag"
    path.touch()
    yield path
    path.unlink(missing_ok=True)  # ends those that hang


def test_function_that_hangs_is_a_timeout_error(flag: Path) -> None:
    with within(120), pytest.raises(sb3compat.WorkerTimeoutError, match="not made their parts"):
        on_ray([*known()[:4], Hangs(flag)], 2, timeout=3.0)


def test_function_that_raises_is_reported_while_another_hangs(flag: Path) -> None:
    def fails() -> Any:
        raise ValueError("make")

    with within(120), pytest.raises(ValueError, match=r"^make$"):
        on_ray([Hangs(flag), fails], 2)


def test_replacement_that_fails_can_be_tried_again(flag: Path) -> None:
    flag.unlink()
    env = opened([*known()[:4], Hangs(flag, fails=True)], on_worker_lost="restart")
    actors_of(env)[1].kill()
    flag.touch()
    for use in (lambda: env.step(ACTIONS), env.reset):
        with within(120), pytest.raises(ValueError, match=r"^not now$"):
            use()
    flag.unlink()
    env.reset()
    assert env.get_attr("row") == list(range(5))


def test_close_and_use_in_a_fork_leave_the_actors_alone() -> None:
    env = opened(known())
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(BaseException):
            refused = attempt(lambda: env.step(ACTIONS), sb3compat.WorkerError)[1]
            env.close()
            code = 0 if "a fork of it" in str(refused) else 2
        os._exit(code)
    with within(60):
        assert os.waitpid(pid, 0)[1] == 0
    env.reset()
    env.step(ACTIONS)


class Cancelling(Known):
    """Raises what is no `Exception`."""

    def step(self, action: Any) -> Any:
        raise asyncio.CancelledError("stop")


def test_what_is_no_exception_arrives() -> None:
    env = opened([*known()[:4], lambda: Cancelling(4, "never")])
    with pytest.raises(asyncio.CancelledError, match=r"^stop$"):
        env.step(ACTIONS)
    env.reset()

    def leaves() -> gym.Env[Any, Any]:
        raise SystemExit(3)

    with pytest.raises(SystemExit) as caught:
        on_ray([leaves], 1)
    assert caught.value.code == 3
