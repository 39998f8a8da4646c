"""What goes through pipes: by reference where it can, by value where it must, or refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import sb3compat
from sb3compat._parallel.messages import Failure, dumps, dumps_answer, dumps_command


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
