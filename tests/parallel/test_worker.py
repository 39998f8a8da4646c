"""The rows of one worker, without a worker."""

from __future__ import annotations

import pickle
from typing import Any

from sb3compat._parallel.memory import Buffers, shapes_of
from sb3compat._parallel.messages import Failure, dumps_command
from sb3compat._parallel.parts import layouts
from sb3compat._parallel.worker import Worker
from tests.envs import BOX, ScriptedEnv, script


def answer(held: Worker, *command: Any) -> Any:
    return pickle.loads(held.run(dumps_command(*command))[1])


def holding(functions: list[Any], first: int = 0, n: int | None = None) -> tuple[Worker, Buffers]:
    held = Worker(lambda size, _: bytearray(size), functions)
    described = answer(held, "make", None, 0)
    count = sum(described.rows)
    n = n or count
    shapes = shapes_of(*layouts(described.spaces, n))
    assert answer(held, "attach", shapes, n, slice(first, first + count), None) is True
    answer(held, "reset", [None] * count, [{}] * count)
    return held, held.buffers


def test_action_is_not_overwritten_by_the_next_one() -> None:
    class Keeping(ScriptedEnv):
        kept: Any = None

        def step(self, action: Any) -> Any:
            info = {"before": None if self.kept is None else self.kept.copy()}
            self.kept = action
            return (*super().step(action)[:4], info)

    held, buffers = holding([lambda: Keeping(script(action_space=BOX, lengths=(9,)), 0)])
    buffers.actions[0][...] = 1
    held.step()
    buffers.actions[0][...] = 2
    assert pickle.loads(held.step()).infos[0]["before"].tolist() == [1, 1, 1]


def test_everything_is_closed_also_after_an_error() -> None:
    closed = []

    class Closing(ScriptedEnv):
        def close(self) -> None:
            closed.append(self.row)
            raise KeyError(self.row)

    held, _ = holding([lambda i=i: Closing(script(), i) for i in range(2)])
    assert isinstance(answer(held, "close"), Failure)
    assert closed == [0, 1]
    assert answer(held, "close") is None


def test_functions_that_fail_close_what_was_made() -> None:
    closed = []

    class Closing(ScriptedEnv):
        def close(self) -> None:
            closed.append(self.row)

    def fail() -> Any:
        raise KeyError("make")

    held = Worker(print, [lambda: Closing(script(), 7), fail])
    failure = answer(held, "make", None, 4)
    assert failure.where == "env_fns[5]"
    assert closed == [7]
