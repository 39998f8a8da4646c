"""Faults in workers: the true error arrives with its row, closing works, nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.envs import MakeEnv, Returns, script
from tests.parallel.failing import ACTIONS, OPENED, N, known, opened, processes_of
from tests.parallel.known import Known
from tests.parallel.teams import KINDS, forked, parts_of
from tests.to_sb3.test_faults import FailingReset, SeveralError

pytestmark = pytest.mark.usefixtures("nobody_is_left")


@pytest.mark.parametrize(("row", "parent_steps"), [(0, False), (3, False), (N - 1, True)])
def test_error_in_a_step_arrives_with_type_traceback_and_row_and_a_reset_goes_on(
    row: int, parent_steps: bool
) -> None:
    # Of several, that of the first row.
    rows = [lambda i=i: Known(i, "raise" if i >= row else "never") for i in range(N)]
    env = opened(rows, parent_steps=parent_steps)
    env.step(ACTIONS)
    with pytest.raises(SeveralError, match=rf"^number {row}$") as caught:
        env.step(ACTIONS)
    for part in (f"in the worker of row {row}:", "Traceback", "SeveralError: number"):
        assert part in str(caught.value.__cause__)
    with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
        env.step(ACTIONS)
    env.reset()
    env.step(ACTIONS)


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
    """Raises where it is told to."""

    def __init__(self, where: str, name: str) -> None:
        super().__init__(1)
        self.where, self.name = where, name

    def step(self, action: Any) -> Any:
        if self.where == "step":
            raise ERRORS[self.name]()
        return super().step(action)

    def reset(self, **kwargs: Any) -> Any:
        if self.where == "reset" and kwargs.get("options"):
            raise ERRORS[self.name]()
        return super().reset(**kwargs)

    def call(self) -> None:
        raise ERRORS[self.name]()

    def close(self) -> None:
        if self.where == "close":
            raise ERRORS[self.name]()


def use_where(env: Any, where: str) -> None:
    """Make the call in which row 1 raises."""
    if where == "call":
        env.env_method("call", indices=1)
    elif where == "reset":
        env.set_options({"now": True})
        env.reset()
    elif where == "step":
        env.step(np.zeros(2, int))
    OPENED.remove(env)
    env.close()


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("where", ["make", "reset", "step", "call", "close"])
def test_what_a_row_raises_arrives_as_from_dummy_vec_env(where: str, name: str) -> None:
    def make() -> Any:
        if where == "make":
            raise ERRORS[name]()
        return Raising(where, name)

    expected = ERRORS[name]()
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        use_where(opened([MakeEnv(script(), 0), make]), where)
    assert type(caught.value) is type(expected)
    assert caught.value.args == expected.args
    if where != "close":
        place = "env_fns[1]" if where == "make" else "row 1"
        assert f"in the worker of {place}:" in str(caught.value.__cause__)
    if where == "call":
        OPENED[-1].step(np.zeros(2, int))  # the worker goes on
    if where in ("reset", "step"):
        env = OPENED[-1]
        with pytest.raises(sb3compat.errors.CallOrderError):
            env.step(np.zeros(2, int))
        env.set_options({})
        env.reset()


def test_errors_in_reset_and_in_the_reset_within_a_step_name_the_row() -> None:
    chosen = script(lengths=(1,))
    fns: list[Any] = [MakeEnv(chosen, i) for i in range(N)]
    fns[3] = lambda: FailingReset(chosen, 1)
    env = opened(fns)
    with pytest.raises(SeveralError, match=r"^reset 1$") as caught:
        env.step(ACTIONS)
    assert "in the worker of row 3:" in str(caught.value.__cause__)
    fns[3] = lambda: FailingReset(chosen, 0)
    with pytest.raises(SeveralError, match=r"^reset 0$") as caught:
        opened(fns)
    assert "in the worker of row 3:" in str(caught.value.__cause__)


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
