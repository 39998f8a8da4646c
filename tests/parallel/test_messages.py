"""What goes through pipes: by reference where it can, by value where it must, or refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import sb3compat
from sb3compat._parallel.messages import Failure, dumps_answer


def test_answer_that_cannot_be_pickled_is_a_refusal() -> None:
    answer: Any = pickle.loads(dumps_answer({"key": (x for x in ())}, 2, "row 2"))
    assert isinstance(answer, Failure)
    with pytest.raises(sb3compat.ConversionError, match=r"can be pickled.*generator"):
        answer.reraise()
