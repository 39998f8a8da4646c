"""What goes through pipes: by reference where it can, by value where it must, or refused."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

import sb3compat
from sb3compat._parallel.messages import Failure, dumps, dumps_answer, dumps_command, failure_of


class TwoArgumentsError(Exception):
    def __init__(self, one: int, two: str) -> None:
        super().__init__(f"{two} {one}")


def failure(error: BaseException) -> Failure:
    try:
        raise error
    except BaseException as caught:
        received: Failure = pickle.loads(dumps(failure_of(caught, 3, "row 3")))
        return received


def test_exception_arrives_with_its_type_and_traceback() -> None:
    with pytest.raises(TwoArgumentsError, match=r"^b 1$") as caught:
        failure(TwoArgumentsError(1, "b")).reraise()
    assert "in the worker of row 3:\nTraceback" in str(caught.value.__cause__)


def test_exception_of_a_local_class_arrives_under_it_whatever_it_holds() -> None:
    class HoldingError(Exception):
        def __init__(self) -> None:
            super().__init__(x for x in ())
            self.lock = threading.Lock()

    with pytest.raises(HoldingError) as caught:
        failure(HoldingError()).reraise()
    assert "generator" in str(caught.value)
    assert "lock" in repr(caught.value.lock)
    assert "HoldingError" in str(caught.value.__cause__)


def test_exception_of_a_class_that_cannot_be_sent_is_a_worker_error() -> None:
    class ClingingError(Exception):
        lock = threading.Lock()

    with pytest.raises(sb3compat.WorkerError, match="class cannot be pickled") as caught:
        failure(ClingingError()).reraise()
    assert "ClingingError" in str(caught.value.__cause__)


def test_value_of_a_local_class_goes_by_value() -> None:
    class Local:
        x = 3

    assert pickle.loads(dumps(Local())).x == 3
    assert type(pickle.loads(dumps(Local()))) is Local  # back where it came from
    name, argument = pickle.loads(dumps_command("make", lambda: 4))
    assert (name, argument()) == ("make", 4)


def test_answer_that_cannot_be_pickled_is_a_refusal() -> None:
    answer: Any = pickle.loads(dumps_answer({"key": (x for x in ())}, 2, "row 2"))
    assert isinstance(answer, Failure)
    with pytest.raises(sb3compat.ConversionError, match=r"can be pickled.*generator"):
        answer.reraise()
