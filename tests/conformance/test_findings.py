"""Findings, and the words of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sb3compat.conformance.findings import (
    EnvFailureError,
    plain,
    said_by,
    short,
)
from sb3compat.conformance.judge import difference, expect
from sb3compat.conformance.values import Value


class SilentError(Exception):
    def __str__(self) -> str:
        raise OSError("no words")


class Unprintable:
    def __repr__(self) -> str:
        raise OSError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (SilentError(), "SilentError: <its str raised OSError>"),
    ],
)
def test_said_by_has_the_type_and_the_text(error: Exception, said: str) -> None:
    assert said_by(error) == said
    assert str(EnvFailureError(" env.reset() ", error, "")) == f"env.reset() raised {said}"


def test_long_texts_are_cut() -> None:
    assert len(said_by(ValueError("x" * 10**6))) < 2100
    assert short("x\n" * 200, 20) == "'x\\nx\\nx\\nx\\nx\\nx\\n…"
    assert short(Unprintable()) == "<Unprintable whose repr raised OSError>"


def test_short_is_on_one_line() -> None:
    assert short(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"


def test_a_cut_message_names_the_place_that_differs() -> None:
    expected = {"camera": np.zeros((3, 40)), "speed": (1.0, np.zeros(2))}
    got = {**expected, "camera": expected["camera"].copy()}
    # What a tolerance allows is not what the message is about.
    got["camera"][0, 1], got["camera"][2, 30] = 1e-12, 0.5
    value, like = Value(0, "obs", got, got), Value(1, "obs", expected, expected)
    demand = expect("close({0}, {1})", value, like, should="as before", like=like)
    assert demand.should.endswith("… (at ['camera', 2, 30]: 0.5, not 0.0), as before")
    assert expect("True", like, should="as before", like=like).should.endswith("…, as before")


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        ([1, 2, 3], [1, 2, 4], " (at [2]: 3, not 4)"),
        (np.array([np.nan, 1.0]), np.array([np.nan, np.nan]), " (at [1]: 1.0, not nan)"),
        (np.array([1e-12]), np.array([0.0]), " (at [0]: 1e-12, not 0.0)"),
        (np.zeros(3), np.zeros(4), ""),
        (object(), np.zeros(4), ""),
        (None, {"key": 1}, ""),
    ],
)
def test_where_values_differ(got: object, expected: object, said: str) -> None:
    assert difference(got, expected) == said


class Foreign:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.bool_(True), "True"),
        (np.array(3), "3"),
        (np.array([1.0, 0.123456789]), "[1, 0.1235]"),
        (np.zeros((84, 84, 4), np.uint8), "uint8 84x84x4, mean 0"),
        (np.array([{"a": 1}, None], dtype=object), "[{a: 1}, None]"),
        ({"a": np.arange(2), "b": (1, "x")}, "{a: [0, 1], b: [1, 'x']}"),
        (np.array(["x"] * 13), "<U1 13"),
        (Foreign(), "[1, 2]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8…"),
    ],
)
def test_values_are_shown_in_few_characters(value: Any, text: str) -> None:
    assert plain(value, 27) == text
