"""Statements that run as they are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.script import Script, standalone, to_source
from tests.conformance.tiny import TinyVecEnv


def test_a_deleted_instance_is_gone() -> None:
    gone = []

    class Mortal(TinyVecEnv):
        def __del__(self) -> None:
            gone.append(self.num_envs)

    script = Script(Instances(Mortal))
    script.run("env = make_env()")
    script.run("del env")
    assert gone == [2]


def test_repeated_statements_become_a_loop() -> None:
    lines = ["a = 0", "a += 1", "b = a", "a += 1", "b = a", "a += 1", "b = a"]
    text = standalone(lines, "", "title")
    assert text.endswith("a = 0\nfor _ in range(3):\n    a += 1\n    b = a\n")


def test_a_guarded_script_can_be_imported() -> None:
    namespace: dict[str, Any] = {"__name__": "imported by a worker"}
    exec(standalone(["raise ValueError"], "make_env = ...", "title", guarded=True), namespace)


def test_helpers_come_with_the_script_that_calls_them() -> None:
    text = standalone(["x = close(1, 1)"], "", "title")
    assert "def close(" in text
    assert "def equal(" in text  # which `close` calls
    assert "def overlap(" not in text
    exec(text, {})


@pytest.mark.parametrize(
    "value",
    [
        {"a": np.array([1.5, 2], np.float32), "b": (np.int8(3),)},
        [np.zeros((2, 2), np.uint8), np.array([True, False])],
        ("text", None, 3),
    ],
)
def test_source_gives_the_same_value_and_dtype(value: Any) -> None:
    again = eval(to_source(value), {"np": np})
    assert repr(again) == repr(value)
