"""The rows of one worker, without a worker."""

from __future__ import annotations

import pickle
from typing import Any

from gymnasium.vector import AutoresetMode

from sb3compat._parallel.messages import Failure, dumps_command
from sb3compat._parallel.worker import Worker
from tests.envs import BOX, ScriptedEnv, fns, script
from tests.native import NativeEnv


def answer(held: Worker, *command: Any) -> Any:
    return pickle.loads(held.run(dumps_command(*command))[1])


def holding(make: Any, n: int = 1) -> Worker:
    """A worker with n rows, which were reset."""
    held = Worker(lambda size, _: bytearray(size), [lambda row=row: make(row) for row in range(n)])
    answer(held, "make", None, 0)
    assert answer(held, "attach", n, slice(0, n), None) is True
    answer(held, "reset", [None] * n, [{}] * n)
    return held


def test_action_is_not_overwritten_by_the_next_one() -> None:
    class Keeping(ScriptedEnv):
        kept: Any = None

        def step(self, action: Any) -> Any:
            info = {"before": None if self.kept is None else self.kept.copy()}
            self.kept = action
            return (*super().step(action)[:4], info)

    held = holding(lambda row: Keeping(script(action_space=BOX, lengths=(9,)), row))
    held.buffers.actions[0][...] = 1
    held.step()
    held.buffers.actions[0][...] = 2
    assert pickle.loads(held.step()).infos[0]["before"].tolist() == [1, 1, 1]


def test_rows_of_a_part_are_asked_together_in_any_order() -> None:
    """A native environment has to be asked for all of its rows at once."""
    env: Any = NativeEnv(fns(2), AutoresetMode.SAME_STEP)
    held = Worker(lambda size, _: bytearray(size), [lambda: env, *fns(1)])
    answer(held, "make", None, 0)
    answer(held, "attach", 3, slice(0, 3), None)
    answers = answer(held, "ask", dict.fromkeys([0, 2, 1], ("set", "mark", 7)))
    assert {row: pickle.loads(data) for row, data in answers.items()} == {0: None, 1: None, 2: None}
    assert env.mark == 7


CLOSED: list[int] = []


class Closing(ScriptedEnv):
    def __init__(self, row: int) -> None:
        super().__init__(script(), row)

    def close(self) -> None:
        CLOSED.append(self.row)
        raise KeyError(self.row)


def test_everything_is_closed_also_after_an_error() -> None:
    CLOSED.clear()
    held = holding(Closing, 2)
    assert isinstance(answer(held, "close"), Failure)
    assert CLOSED == [0, 1]
    assert answer(held, "close") is None


def test_functions_that_fail_close_what_was_made() -> None:
    def fail() -> Any:
        raise KeyError("make")

    CLOSED.clear()
    held = Worker(print, [lambda: Closing(7), fail])
    failure = answer(held, "make", None, 4)
    assert failure.where == "env_fns[5]"
    assert CLOSED == [7]
