from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.findings import Finding
from sb3compat.conformance.output import FORMATS, render, terminal
from sb3compat.conformance.output.json import load, schema
from sb3compat.conformance.output.progress import Progress
from sb3compat.conformance.run.report import Report, Result
from tests.conformance.sample import SNAPSHOTS, sample, snapshots

ROOT = SNAPSHOTS.parents[2]
EMPTY = replace(sample(), results=(), notes=())


@pytest.mark.parametrize("name", snapshots())
def test_snapshot(name: str) -> None:
    # After a change that is meant: python -m tests.conformance.sample
    assert snapshots()[name] == (SNAPSHOTS / name).read_text("utf-8")


def test_no_snapshot_is_left_over() -> None:
    assert {path.name for path in SNAPSHOTS.iterdir()} == set(snapshots())


@pytest.mark.parametrize("form", FORMATS)
def test_equal_reports_look_the_same_and_empty_ones_are_shown(form: str) -> None:
    assert render(sample(), form) == render(sample(), form)
    assert "no checks in 21.3 s" in render(EMPTY, form) or form in ("json", "junit")


def test_summary() -> None:
    assert sample().summary() == (
        "1 failed, 2 errored, 1 warning, 1 xpassed, 1 xfailed, 1 passed, 1 not exercised, "
        "1 skipped in 21.3 s"
    )
    assert sample(strict=True).summary().startswith("2 failed, 2 errored, 1 xpassed")


class Terminal(io.StringIO):
    """A terminal of 72 columns, by the fixture `environment`."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class AsciiFile(io.StringIO):
    encoding = "ascii"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.delenv("NO_COLOR", raising=False)
    # It is about streams that nobody reads at a terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    return monkeypatch


def shown(stream: io.StringIO, report: Report | None = None) -> str:
    terminal.show(report or sample(), stream)
    return stream.getvalue()


def test_colours_on_a_terminal_only(environment: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31mfailed" in shown(Terminal())
    assert "\x1b" not in shown(io.StringIO())
    environment.setenv("TERM", "dumb")
    assert "\x1b" not in shown(Terminal())
    environment.setenv("TERM", "xterm")
    environment.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(Terminal())


def test_text_is_wrapped_on_a_terminal_only(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("NO_COLOR", "1")
    message = " and ".join(f"obs[{row}]={row}.0" for row in range(40))
    result = replace(sample()["terminal_observation_is_last"], message=message)
    report = replace(sample(), results=(result,))
    on_terminal, in_file = shown(Terminal(), report), shown(io.StringIO(), report)
    assert result.message in in_file.splitlines()
    assert result.message not in on_terminal
    assert result.message in " ".join(on_terminal.splitlines())
    # Links and code are copied from there.
    for text in (on_terminal, in_file):
        lines = text.splitlines()
        assert f"Source:   {result.source}" in lines
        assert textwrap.indent(result.reproduction.rstrip(), "    ") in text
        assert not [line for line in lines if line.endswith(" ")]
    for line in on_terminal.splitlines():
        assert len(line) <= 72 or line.startswith(("    ", "Source:", "More on")), line


@pytest.mark.parametrize("width", [1, 20, 60, 80, 200])
def test_the_ids_of_checks_stay_whole(width: int) -> None:
    reason = "it needs what [it] has not got, and there are more words than fit on the line"
    results = tuple(Result.of(check, "skipped", message=reason) for check in checks_of())
    text = terminal.render(replace(sample(), results=results), width=width)
    for result in results:
        assert f"  skipped       {result.check_id} " in text
    assert text.count("words") == len(results)


MARKUP = "[bold]b[/bold] [/] [link=x]l[/link] :smile: [red"


def test_what_looks_like_markup_is_shown_as_it_is(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("NO_COLOR", "1")
    environment.setenv("COLUMNS", "120")
    report = replace(
        sample(),
        target=MARKUP,
        notes=(MARKUP,),
        results=(
            replace(sample().results[3], message=MARKUP, trace=MARKUP, reproduction=MARKUP),
            replace(sample().results[5], message=MARKUP),
        ),
    )
    for text in (shown(io.StringIO(), report), shown(Terminal(), report)):
        assert text.count(MARKUP) == 6


def test_no_stream_is_too_poor(environment: pytest.MonkeyPatch) -> None:
    message = "observation ≥ 1 → \ud800 \x9b"
    report = replace(sample(), results=(replace(sample().results[3], message=message),))
    assert "─" not in shown(AsciiFile())
    assert "failed: terminal_observation_is_last ---" in shown(AsciiFile())
    for encoding in ("ascii", "cp1252", "utf-8"):
        # As `sb3compat.cli.main` sets up the standard output.
        stream = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace")
        terminal.show(report, stream)
        stream.flush()
        said = stream.buffer.getvalue().decode(encoding)
        assert "≥ 1 → \\ud800 \\x9b" in said or "\\u2265 1 \\u2192 \\ud800 \\x9b" in said


LOUD = """
from tests.conformance.tiny import TinyVecEnv

class Loud(TinyVecEnv):
    def reset(self):
        raise ValueError("[bold]≥[/bold] \\x1b[31m \\ud800")
"""


@pytest.mark.parametrize(
    ("encoding", "sign"), [("ascii", "\\u2265"), ("cp1252", "\\u2265"), ("utf-8", "≥")]
)
def test_the_command_says_what_the_stream_can_take(
    encoding: str, sign: str, tmp_path: Path
) -> None:
    (tmp_path / "loud.py").write_text(LOUD, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable, "-m", "sb3compat", "check", "loud.py:Loud", "--no-isolate",
            "--only=reset_returns_obs_only",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    message = f"raised ValueError: [bold]{sign}[/bold] \\x1b[31m \\ud800"
    assert message in done.stdout.decode(encoding)


def test_progress_on_a_terminal_only(environment: pytest.MonkeyPatch) -> None:
    check, result = checks_of("vec_env")[0], sample().results[3]
    for stream, quiet, shows in (
        (Terminal(), False, True),
        (Terminal(), True, False),
        (io.StringIO(), False, False),
    ):
        threads = threading.active_count()
        progress = Progress(stream, quiet=quiet)
        progress.say("making [bold]it[/bold] …")
        progress(check, None, 1, 2)
        progress(check, result, 1, 2)
        progress(check, None, 2, 2)
        # A process with threads must not fork, which the kit does.
        assert threading.active_count() == threads
        progress.clear()
        progress.clear()
        text = _ESCAPE.sub("", stream.getvalue())
        expected = ["making [bold]it[/bold] …", f"1/2  {check.id}", f"2/2, 1 failed  {check.id}"]
        assert [word in text for word in expected] == [shows] * 3
        # In the end the line is empty, and the cursor is there again.
        assert stream.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K") == shows
        assert bool(stream.getvalue()) == shows


_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_nothing_moves_the_cursor_of_a_terminal() -> None:
    # What an environment raises may hold anything.
    assert "\x1b" not in render(sample(), "terminal")


@pytest.mark.parametrize("report", [sample(), sample(strict=True), EMPTY])
def test_json_is_as_the_schema_has_it(report: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    data = json.loads(render(report, "json"))
    validator.validate(data)
    # The schema would see another one, too.
    for strange in ({"more": 1}, {"schema_version": 2}, {"counts": {"lost": 1}}):
        assert not validator.is_valid({**data, **strange})
    for result in data["results"]:
        assert not validator.is_valid({**data, "results": [{**result, "status": "lost"}]})


def test_json_can_be_read_again() -> None:
    assert load(render(sample(), "json")) == sample()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"Expected a report as JSON .*, got Expecting property name"),
        ("[]", r"Expected a report with schema_version=1, got schema_version=None"),
        ('{"schema_version": 7}', r"schema_version=1, got schema_version=7"),
        ('{"schema_version": 1}', r"got one that does not fit: 'target'"),
    ],
)
def test_what_is_no_report_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(text)


@pytest.mark.parametrize("strict", [False, True])
def test_junit_counts_what_it_holds(strict: bool) -> None:
    report = sample(strict=strict)
    (suite,) = ElementTree.fromstring(render(report, "junit"))
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests", "")) == len(report.results)
    for kind, counted in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(suite.findall(f"testcase/{kind}")) == int(suite.get(counted, ""))
    failed = {
        c.get("name") for c in cases if c.find("failure") is not None or c.find("error") is not None
    }
    assert failed == {result.check_id for result in report.failures()}


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_is_well_formed_and_loads_nothing() -> None:
    text = render(sample(), "html")
    page = Page(text)
    assert page.open == []
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 1
    assert not {"img", "iframe", "object"} & set(tags)
    assert all("src" not in attributes for _, attributes in page.elements)
    links = [attributes["href"] for tag, attributes in page.elements if "href" in attributes]
    assert all(link.startswith(("https://", "#", "data:")) for link in links)
    assert "url(" not in text
    assert "@import" not in text
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_html_shows_what_came_and_what_should_have() -> None:
    page = Page(render(sample(), "html"))
    text = "".join(page.texts)
    assert "infos[1]['terminal_observation'] = <script>alert(1)</script> [step 2, row 1]" in text
    assert sample()["terminal_observation_is_last"].reproduction.strip() in text
    # Once within the drawing, in the step and row where it is wrong.
    wrong = re.findall(r'<div class="wrong"><dt>(\w+)</dt>', render(sample(), "html"))
    assert wrong == ["infos", "reward", "reward"]


HOSTILE = """</script></style><script>alert("1")</script> ' " onmouseover='x' {{ 7 * 7 }} <!--"""


def test_html_escapes_all_that_comes_from_the_environment() -> None:
    finding = Finding(HOSTILE, HOSTILE, HOSTILE, 2, 1)
    moments = tuple(
        replace(each, observation=HOSTILE, reward=HOSTILE, flags=HOSTILE, note=HOSTILE)
        for each in sample()["terminal_observation_is_last"].timeline
    )
    told = replace(
        sample()["terminal_observation_is_last"],
        message=HOSTILE,
        contract=HOSTILE,
        reproduction=HOSTILE,
        trace=HOSTILE,
        finding=finding,
        timeline=moments,
    )
    bare = replace(told, check_id="dones_shape", finding=None, timeline=())
    report = replace(
        sample(),
        target=HOSTILE,
        notes=(HOSTILE,),
        versions={HOSTILE: HOSTILE},
        results=(told, bare),
    )
    text = render(report, "html")
    page, usual = Page(text), Page(render(sample(), "html"))
    assert page.open == []
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in usual.elements}
    assert [tag for tag, _ in page.elements].count("script") == 1
    names = {name for _, attributes in page.elements for name in attributes}
    assert names <= {name for _, attributes in usual.elements for name in attributes}
    # The target twice, a note, a version and its name; the contract and the message of both in the
    # table; and of each failure all that it has.
    assert "".join(page.texts).count(HOSTILE) >= 5 + 4 + 2 * 3


BLOCKED = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""


def python(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_rich_and_jinja2_are_imported_when_they_are_needed() -> None:
    script = """
import sys

def loaded():
    print([name for name in ("rich", "jinja2") if name in sys.modules])

import sb3compat.conformance
sb3compat.conformance.check_vec_env
from sb3compat.conformance.commands import check, explain, list, replay
from sb3compat.conformance.run.report import Report
from sb3compat.conformance.output import FORMATS, render
from tests.conformance.tiny import TinyVecEnv
sb3compat.conformance.check_vec_env(TinyVecEnv, only=["dones_bool_array"], isolate=False)
report = Report("it", "vec_env", None, 1, 0, ())
loaded()
for form in ("json", "junit", "markdown", "html"):
    render(report, form)
    loaded()
sys.modules.pop("jinja2")
render(report, "terminal")
loaded()
"""
    found = python(script).splitlines()
    assert found == ["[]", "[]", "[]", "[]", "['jinja2']", "['rich']"]


@pytest.mark.parametrize(
    ("library", "options"),
    [
        ("rich", []),
        ("rich", ["--format=terminal", "-q", "--output=x.txt"]),
        ("jinja2", ["--html=x.html"]),
        ("jinja2", ["--format=html"]),
    ],
)
def test_a_missing_library_is_told_of_before_the_run(library: str, options: list[str]) -> None:
    script = f"""
from sb3compat.cli import main
sys.stderr = sys.stdout
print(main(["check", "tests.conformance.tiny:boom", "--no-isolate", *{options}]))
"""
    form = "terminal" if library == "rich" else "html"
    assert python(BLOCKED + script, library) == (
        f"sb3compat: Expected {library} to be installed, which the {form} report is written with. "
        'Install it: pip install "sb3compat[conformance]"\n2\n'
    )


def test_the_other_formats_need_no_further_library() -> None:
    script = """
from sb3compat.cli import main
run = ["check", "tests.conformance.tiny:TinyVecEnv", "--only=dones_bool_array", "--no-isolate"]
class Terminal:
    encoding = "utf-8"
    def isatty(self): return True
    def write(self, text): raise AssertionError(text)
    def flush(self): pass
sys.stderr, stderr = Terminal(), sys.stderr
codes = [main([*run, *more]) for more in (["--format=json"], ["--format=junit"], ["-q"])]
sys.stderr = stderr
print(codes, main(["list"]), main(["explain", "dones_bool_array"]))
"""
    assert python(BLOCKED + script, "rich", "jinja2").endswith("[0, 0, 0] 0 0\n")
