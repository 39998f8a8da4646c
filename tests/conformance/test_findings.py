"""Findings, and the words of errors."""

from __future__ import annotations

import numpy as np
import pytest

from sb3compat.conformance.findings import (
    EnvFailureError,
    said_by,
    short,
)


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
