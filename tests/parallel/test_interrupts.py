"""Interrupts at any point of a call: the next call gets no answer of the one before.

`operations.py` does the same in any order, but for rows that this process steps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import sb3compat
from tests.interrupts import attempt, count, counting, interrupt, no_hang, points
from tests.lockstep import same
from tests.lockstep_back import dummy
from tests.parallel.failing import opened

pytestmark = pytest.mark.usefixtures("nobody_is_left")


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "step": lambda env: env.step(np.zeros(3, int)),
    "reset": lambda env: env.reset(),
    "get_attr": lambda env: env.get_attr("row"),
    "get_images": lambda env: env.get_images(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_interrupt_at_any_point_leaves_no_answer_for_the_next_call(name: str) -> None:
    def started() -> Any:
        return opened(counting(3), parent_steps=True)

    env = started()
    expected = transcript(dummy(counting(3)))
    total = count(lambda: OPERATIONS[name](env))
    for at, error in points(total):
        where = f"{name}, {error.__name__} at point {at} of {total}"
        with no_hang():
            raised = interrupt(lambda env=env: OPERATIONS[name](env), at, error)
            got, lost = attempt(lambda env=env: read_and_reset(env), sb3compat.WorkerError)
        if lost is not None:  # a worker of which is not known whether it got its message
            assert "died" in str(lost), f"{where}: {lost}"
            env = started()
        else:
            same(got, expected, f"{where}: {raised}")


def read_and_reset(env: Any) -> Any:
    with suppress(sb3compat.errors.CallOrderError):
        assert env.env_method("add", 3, indices=[2, 0]) == [5, 3]
    return transcript(env)


def transcript(env: Any) -> Any:
    env.seed(7)
    results: list[Any] = [(env.reset(), list(env.reset_infos))]
    results += [(env.step(np.zeros(3, int)), list(env.reset_infos)) for _ in range(4)]
    return results
