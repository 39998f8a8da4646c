"""Signs of life: nothing at first, then records of the log and a line in a terminal."""

from __future__ import annotations

import io
import logging
from functools import partial

import pytest

from sb3compat._parallel.signs import Signs


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
