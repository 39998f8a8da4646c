"""Statements that run as they are written down."""

from __future__ import annotations

import pytest

from sb3compat.conformance.findings import EnvFailureError
from sb3compat.conformance.program.script import Script
from tests.conformance.tiny import TinyVecEnv


def test_an_expression_that_raises_is_in_the_script() -> None:
    script = Script(TinyVecEnv)
    script.run("numbers = [1]")
    with pytest.raises(EnvFailureError, match="IndexError"):
        script.value("numbers[1]")
    with pytest.raises(IndexError):
        exec(script.source("make_env = ...", "title"), {})
