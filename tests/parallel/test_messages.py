"""What goes through pipes: by reference where it can, by value where it must, or refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import sb3compat
from sb3compat._parallel.messages import dumps_answer
from tests.parallel.failing import ACTIONS, known, opened
from tests.parallel.known import Known


class Generating(Known):
    def generate(self) -> Any:
        return (x for x in ())


def test_result_that_cannot_be_pickled_is_refused() -> None:
    env = opened([*known()[:4], lambda: Generating(4)])
    with pytest.raises(sb3compat.ConversionError, match=r"can be pickled.*generator"):
        env.env_method("generate", indices=4)
    env.step(ACTIONS)


class RunsOut:
    def __reduce__(self) -> Any:
        raise TimeoutError("the time is up")


def test_time_limit_that_ends_the_pickling_of_a_result_arrives_as_itself() -> None:
    """It is a signal handler that raises it, and no result that cannot be pickled."""
    answer: Any = pickle.loads(dumps_answer(RunsOut(), 3, "row 3"))
    with pytest.raises(TimeoutError, match="the time is up"):
        answer.reraise()
