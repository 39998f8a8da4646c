from __future__ import annotations

import io
import re
import threading
from types import SimpleNamespace

import pytest

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.output.progress import Progress
from tests.conformance.output.streams import Terminal
from tests.conformance.sample import sample

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_progress_on_a_terminal_only(environment: pytest.MonkeyPatch) -> None:
    check, result = checks_of("vec_env")[0], sample().results[3]
    for stream, quiet, shows in (
        (Terminal(), False, True),
        (Terminal(), True, False),
        (io.StringIO(), False, False),
    ):
        threads = threading.active_count()
        progress = Progress(stream, quiet=quiet)
        progress.say("making [bold]it[/bold]")
        progress(check, None, 1, 2)
        progress(check, result, 1, 2)
        progress(check, None, 2, 2)
        # A process with threads must not fork, which the kit does.
        assert threading.active_count() == threads
        progress.close()
        progress.close()
        text = _ESCAPE.sub("", stream.getvalue())
        expected = ["0 s  making [bold]it[/bold] …", f"1/2  {check.id}"]
        expected += [f"2/2, 1 failed  {check.id}"]
        assert [word in text for word in expected] == [shows] * 3
        # In the end the line is empty, and the cursor is there again.
        assert stream.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K") == shows
        assert bool(stream.getvalue()) == shows


def test_progress_tells_how_much_time_has_passed_and_is_left() -> None:
    now = 100.0
    stream = Terminal()
    progress = Progress(stream, clock=lambda: now)
    progress.say("looking for the end of an episode")
    now += 5
    progress.say("")
    progress.began(SimpleNamespace(estimate=40.0))  # type: ignore[arg-type]
    check, result = checks_of("vec_env")[0], sample().results[3]
    progress(check, None, 1, 2)
    assert progress.left() == 40
    now += 10
    progress(check, result, 1, 2)
    progress(check, None, 2, 2)
    assert progress.left() == 15  # half of half of what was thought, and half of what one took
    text = _ESCAPE.sub("", stream.getvalue())
    for words in (
        "5 s  looking for",
        f"{check.id}  5 s, 40 s left",
        f"{check.id}  15 s, 15 s left",
    ):
        assert words in text
