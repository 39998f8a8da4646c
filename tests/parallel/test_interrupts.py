"""Interrupts at any point of a call: the next call gets no answer of the one before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import sb3compat
from sb3compat._ipc.pipes import Exchange
from tests.interrupts import attempt, count, counting, interrupt, no_hang, points
from tests.lockstep import same
from tests.lockstep_back import dummy
from tests.parallel.failing import ACTIONS, failing, opened

pytestmark = pytest.mark.usefixtures("nobody_is_left")


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "step": lambda env: env.step(np.zeros(3, int)),
    "reset": lambda env: env.reset(),
    "get_attr": lambda env: env.get_attr("row"),
    "get_images": lambda env: env.get_images(),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("kwargs", [{}, {"parent_steps": True}])
def test_interrupt_at_any_point_leaves_no_answer_for_the_next_call(
    name: str, kwargs: dict[str, Any]
) -> None:
    def started() -> Any:
        return opened(counting(3), **kwargs)

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


def test_interrupt_while_a_step_is_sent_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    env = opened(failing("never"))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "send_same", interrupt)
        with pytest.raises(KeyboardInterrupt):
            env.step(ACTIONS)
    with pytest.raises(sb3compat.errors.CallOrderError, match="reset"):
        env.step(ACTIONS)
    env.reset()
    env.step(ACTIONS)
