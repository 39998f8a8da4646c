"""A page that is made from a run says when it is older than the sources that it judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from versions.stamps import PAGES, bare, main, write

ROOT = Path(__file__).parents[1]
NAME = "docs/reference/performance.md"
TEXT = "# A page\n\nWhat was found.\n"


def test_page_of_older_sources_says_so_until_it_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("versions.stamps.PAGES", {NAME: PAGES[NAME]})
    page, source = tmp_path / NAME, tmp_path / "sb3compat" / "errors.py"
    for path in (page, source):
        path.parent.mkdir(parents=True)
    source.write_text("one = 1\n")
    write(page, TEXT, root=tmp_path)
    new = page.read_text()
    assert main(["--check"], tmp_path) == 0
    source.write_text("one = 2\n")
    assert main(["--check"], tmp_path) == 1
    assert page.read_text() == new
    assert main([], tmp_path) == 0
    assert page.read_text().startswith("# A page\n\n**This page was generated before the latest")
    assert bare(page.read_text()) == bare(new) == TEXT
    assert main(["--check"], tmp_path) == 0
    source.write_text("one = 1\n")
    assert main([], tmp_path) == 0
    assert page.read_text() == new


def test_sources_of_each_page_are_there() -> None:
    for name, page in PAGES.items():
        assert (ROOT / name).is_file()
        assert all(any(ROOT.glob(pattern)) for pattern in page.sources), name
