"""Signs of life: nothing at first, then records of the log and a line in a terminal."""

from __future__ import annotations

import io
import logging
from functools import partial
from typing import Any

import gymnasium as gym
import pytest

from sb3compat._parallel.signs import Signs, name_of
from tests.envs import Identity


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("screen", "term"),
    [(True, "xterm"), (True, None), (True, "dumb"), (False, "xterm")],
    ids=["terminal", "unknown terminal", "dumb terminal", "file"],
)
def test_quick_start_says_nothing_and_a_slow_one_more_and_more(
    screen: bool,
    term: str | None,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Screen() if screen else io.StringIO()
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    caplog.set_level(logging.INFO, "sb3compat")
    seconds = 0
    shown = Signs(stream, lambda: float(seconds))
    records, lines = [], []
    for seconds in range(30):
        shown.tell(partial("{} s".format, seconds))
        records.append(len(caplog.records))
        lines.append(stream.getvalue().count("\r"))
    shown.clear()
    assert [records.index(count) for count in (1, 2, 3)] == [3, 13, 23]
    assert caplog.messages[0] == "3 s"
    if screen and term != "dumb":
        assert [lines.index(count) for count in (1, 2)] == [3, 4]
        assert stream.getvalue().startswith("\rsb3compat: 3 s\x1b[K\r")
        assert stream.getvalue().endswith("\r\x1b[K")  # nothing stays
    else:
        assert stream.getvalue() == ""


def make_one(env_id: str = "CartPole-v1") -> Any:
    return gym.make(env_id)


def test_name_of_a_function_says_where_it_is() -> None:
    line = make_one.__code__.co_firstlineno
    assert name_of(make_one) == f"make_one, test_signs.py:{line}"
    assert name_of(partial(make_one, "Acrobot-v1")) == name_of(make_one)
    assert name_of(lambda: 0).startswith("<lambda>, test_signs.py:")
    assert name_of(Identity) == "Identity"
