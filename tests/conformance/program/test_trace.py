"""Tracebacks without the frames of the kit."""

from __future__ import annotations

import pytest

from sb3compat.conformance.findings import EnvFailureError
from sb3compat.conformance.program import trace
from sb3compat.conformance.program.script import Script
from tests.conformance import tiny


def test_a_traceback_begins_in_the_code_of_the_user() -> None:
    script = Script(tiny.boom)
    with pytest.raises(EnvFailureError) as raised:
        script.run("env = make_env()")
    lines = raised.value.trace.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert tiny.__file__ in lines[1]
    assert lines[-1] == "ValueError: no licence for the simulator"


def test_each_room_of_the_kit_is_left_out() -> None:
    assert trace.is_ours(trace.__file__)
    assert trace.is_ours(trace.__file__.replace("program/trace", "run/server"))
    assert trace.is_ours("<script>")
    assert not trace.is_ours(tiny.__file__)
