"""The page about the checks is the one that the checks give."""

from __future__ import annotations

from tests.interpreter import run


def test_the_page_is_up_to_date() -> None:
    done = run("docs/generate.py", "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
