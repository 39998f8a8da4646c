from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.output import FORMATS, render, terminal
from sb3compat.conformance.output.json import load, schema
from sb3compat.conformance.run.report import Report
from tests.conformance.sample import SNAPSHOTS, sample, snapshots

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
    def isatty(self) -> bool:
        return True


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


def test_colours_on_a_terminal_only(environment: pytest.MonkeyPatch) -> None:
    assert terminal.may_colour(Terminal())
    assert not terminal.may_colour(io.StringIO())
    environment.setenv("TERM", "dumb")
    assert not terminal.may_colour(Terminal())
    environment.setenv("TERM", "xterm")
    environment.setenv("NO_COLOR", "1")
    assert not terminal.may_colour(Terminal())


def test_progress(environment: pytest.MonkeyPatch) -> None:
    check, result = checks_of("vec_env")[0], sample().results[3]
    for stream, quiet, shows in (
        (Terminal(), False, True),
        (Terminal(), True, False),
        (io.StringIO(), False, False),
    ):
        progress = terminal.Progress(stream, quiet=quiet)
        progress(check, None, 1, 2)
        progress(check, result, 1, 2)
        progress(check, None, 2, 2)
        progress.clear()
        lines = stream.getvalue().split("\r\x1b[2K")[1:]
        expected = [f"[1/2] {check.id}", f"[2/2, 1 failed] {check.id}", ""]
        assert lines == (expected if shows else [])


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
