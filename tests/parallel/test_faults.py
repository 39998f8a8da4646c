"""Faults in workers: the true error arrives with its row, closing works, nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.closing import OPENED
from tests.envs import MakeEnv, Returns, script
from tests.parallel.failing import ACTIONS, known, opened, processes_of
from tests.parallel.known import Known
from tests.parallel.teams import KINDS, forked, parts_of
from tests.to_sb3.test_faults import SeveralError


class OwnError(BaseException):
    """No `Exception`, with arguments of its own and something that cannot be pickled."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(f"{row}: {text}")
        self.held = (x for x in ())


ERRORS: dict[str, Callable[[], BaseException]] = {
    "ordinary": lambda: SeveralError(3, "stop"),
    "cancelled": lambda: asyncio.CancelledError("stop"),
    "exit": lambda: SystemExit(3),
    "interrupt": lambda: KeyboardInterrupt("stop"),
    "own": lambda: OwnError(3, "stop"),
    "generator": lambda: GeneratorExit("stop"),
}


class Raising(Known):
    """Raises once where it is told to."""

    def __init__(self, row: int, where: str, name: str) -> None:
        super().__init__(row)
        self.where, self.name = where, name

    def _raise_in(self, where: str) -> None:
        if self.where == where:
            self.where = ""
            raise ERRORS[self.name]()

    def step(self, action: Any) -> Any:
        self._raise_in("step")
        *result, _, info = super().step(action)
        return *result, self.where == WITHIN, info

    def reset(self, **kwargs: Any) -> Any:
        self._raise_in("reset" if kwargs.get("options") else WITHIN if self._resets else "")
        return super().reset(**kwargs)

    def call(self) -> None:
        self._raise_in("call")

    def close(self) -> None:
        self._raise_in("close")


def use_where(env: Any, where: str) -> None:
    """Make the call in which rows raise."""
    if where == "call":
        env.env_method("call", indices=1)
    elif where == "reset":
        env.set_options({"now": True})
        env.reset()
    elif where in ("step", WITHIN):
        env.step(np.zeros(env.num_envs, int))
    OPENED.remove(env)
    env.close()


WITHIN = "reset within a step"
WHERE = ("make", "reset", "step", WITHIN, "call", "close")
# The last one is raised in this process.
PLACES = [*((where, name, 2) for where in WHERE for name in ERRORS), ("step", "own", 1)]


@pytest.mark.parametrize(("where", "name", "raising"), PLACES)
def test_what_a_row_raises_arrives_as_from_dummy_vec_env(
    where: str, name: str, raising: int
) -> None:
    """The exception of the first row, of several; or that of a row of this process."""

    def make(row: int) -> Any:
        if where == "make":
            raise ERRORS[name]()
        return Raising(row, where, name)

    expected = ERRORS[name]()
    fns = [MakeEnv(script(), 0), *[partial(make, row + 1) for row in range(raising)]]
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        use_where(opened(fns, raising, parent_steps=raising == 1), where)
    assert type(caught.value) is type(expected)
    assert caught.value.args == expected.args
    if where != "close":
        place = "env_fns[1]" if where == "make" else "row 1"
        for part in (f"in the worker of {place}:", "Traceback", type(expected).__name__):
            assert part in str(caught.value.__cause__)
    if where == "call":
        OPENED[-1].step(np.zeros(3, int))  # the worker goes on
    if where in ("reset", "step", WITHIN):
        env = OPENED[-1]
        with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
            env.step(np.zeros(env.num_envs, int))
        env.set_options({})
        env.reset()
        env.step(np.zeros(env.num_envs, int))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("dummy", "adapter")])
def test_error_in_a_part_of_several_rows_arrives(kind: str) -> None:
    fns = known("raise")
    env = opened(parts_of(fns, [("single", 1), (kind, 3), ("single", 1)]), 1)
    env.step(ACTIONS)
    with pytest.raises(SeveralError, match=r"^number 3$") as caught:
        env.step(ACTIONS)
    assert "Traceback" in str(caught.value.__cause__)


def test_wrong_shape_names_the_row_among_all() -> None:
    fns: list[Any] = known()
    fns[4] = lambda: Returns(step=lambda _, *rest: (np.zeros(7, np.float32), *rest))
    env = opened(fns)
    with pytest.raises(sb3compat.ConversionError, match=r"row 4 gave shape=\(7,\)"):
        env.step(ACTIONS)


@pytest.mark.parametrize(
    ("use", "worker", "rows"),
    [
        (lambda env: env.step(ACTIONS), 0, "rows 0 to 2"),
        (lambda env: env.reset(), 1, "rows 3 to 4"),
        (lambda env: env.get_images(), 0, "rows 0 to 2"),
    ],
)
def test_killed_worker_is_named_and_every_call_refused(
    use: Callable[[Any], Any], worker: int, rows: str
) -> None:
    env = opened(known())
    processes_of(env)[worker].kill()
    with pytest.raises(sb3compat.WorkerError, match=f"{rows} has died"):
        use(env)
    for again in (
        lambda: env.step(ACTIONS),
        env.reset,
        lambda: env.get_attr("row", indices=0),
        lambda: env.env_method("set_mu", 1, indices=[0]),
        env.get_images,
    ):
        with pytest.raises(sb3compat.WorkerError, match="build a new one"):
            again()


def test_worker_that_dies_while_it_makes_its_parts_is_named() -> None:
    def dies() -> gym.Env[Any, Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    with pytest.raises(sb3compat.WorkerError, match=r"env_fns\[4\] to env_fns\[5\] died"):
        forked([*known(), dies], 3)
