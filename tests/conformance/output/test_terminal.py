from __future__ import annotations

import io
from dataclasses import replace

import pytest

from sb3compat import cli
from sb3compat.conformance.output import brief, render, terminal
from sb3compat.conformance.run.report import Report
from tests.conformance.output.streams import AsciiFile, Terminal
from tests.conformance.sample import sample


def shown(stream: io.StringIO, report: Report | None = None, *, verbose: bool = False) -> str:
    terminal.show(report or sample(), stream, verbose=verbose)
    return stream.getvalue()


def test_colours_on_a_terminal_only(environment: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31mfailed" in shown(Terminal())
    assert "\x1b" not in shown(io.StringIO())
    environment.setenv("TERM", "dumb")
    assert "\x1b" not in shown(Terminal())
    environment.setenv("TERM", "xterm")
    environment.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(Terminal())


def test_what_is_partly_exercised_says_what_to_pass_however_short_the_output() -> None:
    why = "pass them, --reference package:name"
    whole = sample()
    partly = (whole["no_phantom_transition"], replace(whole["no_phantom_transition"], check_id="x"))
    report = replace(whole, results=(*whole.results[:1], *partly))
    for text in (shown(io.StringIO(), report), brief(report)):
        assert text.count(why) == 1
        assert "no_phantom_transition, x" in text
    assert shown(io.StringIO(), report, verbose=True).count(why) == 2


def test_many_checks_without_a_verdict_are_counted_and_named_with_v() -> None:
    whole = sample()
    some = [replace(whole["no_phantom_transition"], check_id=f"check_{i}") for i in range(4)]
    few, many = (replace(whole, results=tuple(some[:count])) for count in (3, 4))
    assert "check_0, check_1, check_2\n" in shown(io.StringIO(), few)
    assert "4 checks; -v names them\n" in shown(io.StringIO(), many)
    assert "check_3" not in shown(io.StringIO(), many)
    assert "check_3" in shown(io.StringIO(), many, verbose=True)


MARKUP = "[bold]b[/bold] [/] [link=x]l[/link] :smile: [red"


def test_what_looks_like_markup_is_shown_as_it_is(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("NO_COLOR", "1")
    environment.setenv("COLUMNS", "120")
    report = replace(
        sample(),
        target=MARKUP,
        notes=(MARKUP,),
        results=(
            replace(
                sample().results[3],
                message=MARKUP,
                trace=MARKUP,
                reproduction=MARKUP,
                finding=None,
            ),
            replace(sample().results[5], message=MARKUP),
        ),
    )
    for text in (shown(io.StringIO(), report), shown(Terminal(), report)):
        assert text.count(MARKUP) == 6


def test_no_stream_is_too_poor(environment: pytest.MonkeyPatch) -> None:
    message = "observation ≥ 1 → \ud800 \x9b"
    report = replace(
        sample(), results=(replace(sample().results[3], message=message, finding=None),)
    )
    assert "─" not in shown(AsciiFile())
    assert "failed: terminal_observation_is_last ---" in shown(AsciiFile())
    for encoding in ("ascii", "cp1252", "utf-8"):
        # As `sb3compat.cli.main` sets up the standard output.
        stream = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace")
        terminal.show(report, stream)
        stream.flush()
        said = stream.buffer.getvalue().decode(encoding)
        assert "≥ 1 → \\ud800 \\x9b" in said or "\\u2265 1 \\u2192 \\ud800 \\x9b" in said


@pytest.mark.parametrize(("encoding", "sign"), [("ascii", "\\u2265"), ("utf-8", "≥")])
def test_the_command_says_what_the_stream_can_take(
    encoding: str, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr("sys.stdout", stream)
    check = (
        "check",
        "tests.conformance.tiny:Loud",
        "--no-isolate",
        "--only=reset_returns_obs_only",
    )
    assert cli.main(check) == 1
    message = f"raised ValueError: [bold]{sign}[/bold] \\x1b[31m \\ud800"
    assert message in stream.buffer.getvalue().decode(encoding)


def test_nothing_moves_the_cursor_of_a_terminal() -> None:
    # What an environment raises may hold anything.
    assert "\x1b" not in render(sample(), "terminal")
