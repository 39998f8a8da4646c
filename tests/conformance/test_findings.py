"""Findings, and the words of errors."""

from __future__ import annotations

import numpy as np
import pytest

from sb3compat.conformance.findings import (
    EnvFailureError,
    Finding,
    family_name,
    nearest,
    said_by,
    short,
)


class SilentError(Exception):
    def __str__(self) -> str:
        raise OSError("no words")


class Unprintable:
    def __repr__(self) -> str:
        raise OSError("no words")


def test_a_place_names_the_step_and_the_row() -> None:
    assert Finding("x", "1", "2", 0).place == "before the first step"
    assert Finding("x", "1", "2", 3, 0).place == "step 3, row 0"


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


def test_nearest_asks_only_for_similar_names() -> None:
    known = ["dones_shape", "rewards_shape"]
    assert nearest("done_shape", known) == " Did you mean 'dones_shape'?"
    assert nearest("rew", known) == " Did you mean 'rewards_shape'?"
    assert nearest("qqq", known) == ""


def test_an_interface_has_its_article() -> None:
    assert family_name("vec_env") == "an SB3 VecEnv"
    assert family_name("vector_env") == "a Gymnasium VectorEnv"
