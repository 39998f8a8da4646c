"""The formats together: their snapshots, and what each of them needs."""

from __future__ import annotations

import re

import pytest

from sb3compat.conformance.output import FORMATS, render
from tests.conformance.sample import EMPTY, SNAPSHOTS, sample, snapshots
from tests.interpreter import run


@pytest.mark.parametrize("name", snapshots())
def test_snapshot(name: str) -> None:
    # After a change that is meant: python -m tests.conformance.sample
    assert snapshots()[name] == (SNAPSHOTS / name).read_text("utf-8")


@pytest.mark.parametrize("form", FORMATS)
def test_equal_reports_look_the_same_and_empty_ones_are_shown(form: str) -> None:
    assert render(sample(), form) == render(sample(), form)
    text = re.sub(r"</?span[^>]*>", "", render(EMPTY, form))
    assert "no checks in 21.3 s" in text or form in ("json", "junit")


def test_summary() -> None:
    assert sample().summary() == (
        "1 failed, 2 errored, 1 warning, 1 xpassed, 1 xfailed, 1 passed, 1 partly exercised, "
        "1 not exercised, 1 skipped in 21.3 s"
    )
    assert sample(strict=True).summary().startswith("2 failed, 2 errored, 1 xpassed")


BLOCKED = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1:]))"


def python(script: str, *arguments: str) -> str:
    done = run("-c", script, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_missing_library_is_told_of_before_the_run() -> None:
    script = """
from sb3compat.cli import main
sys.stderr = sys.stdout
for more in (["--format=terminal", "-q", "--output=x.txt"], ["--format=html"]):
    print(main(["check", "tests.conformance.tiny:boom", "--no-isolate", *more]))
"""
    assert python(BLOCKED + script, "rich", "jinja2") == "".join(
        f"sb3compat: Expected {library} to be installed, which {what_for}. "
        'Install it: pip install "sb3compat[conformance]"\n2\n'
        for library, what_for in (("rich", "prints tables"), ("jinja2", "writes pages"))
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
