"""A page that is made from a run says when it is older than the sources that it judges."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from versions.stamps import PAGES, bare, main, write

ROOT = Path(__file__).parents[1]
NAME = "docs/reference/performance.md"
TEXT = "# A page\n\nWhat was found.\n"
OLDER = "\n\n**This page was generated before the latest changes"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page just made, in a repository with one source."""
    monkeypatch.setattr("versions.stamps.PAGES", {NAME: PAGES[NAME]})
    path = tmp_path / NAME
    path.parent.mkdir(parents=True)
    (tmp_path / "sb3compat").mkdir()
    (tmp_path / "sb3compat" / "errors.py").write_text("one = 1\n")
    write(path, TEXT, root=tmp_path)
    return path


def test_page_says_what_it_was_made_of(page: Path, tmp_path: Path) -> None:
    said = page.read_text()
    assert re.search(r"^\*Made on \d{4}-\d\d-\d\d at commit .* with Python 3.*`\w{16}`", said, re.M)
    assert OLDER not in said
    assert bare(said) == TEXT
    assert main(["--check"], tmp_path) == 0


def test_page_of_older_sources_says_so_until_it_is_made_anew(page: Path, tmp_path: Path) -> None:
    new, source = page.read_text(), tmp_path / "sb3compat" / "errors.py"
    source.write_text("one = 2\n")
    assert main(["--check"], tmp_path) == 1
    assert page.read_text() == new
    assert main([], tmp_path) == 0
    older = page.read_text()
    assert older.startswith(f"# A page{OLDER}")
    assert "run `make bench` to update it" in older
    assert bare(older) == TEXT
    assert main(["--check"], tmp_path) == 0
    write(page, TEXT, whole=False, root=tmp_path)
    assert page.read_text() == older
    source.write_text("one = 1\n")
    assert main(["--check"], tmp_path) == 1
    assert main([], tmp_path) == 0
    assert page.read_text() == new
    source.write_text("one = 2\n")
    assert main([NAME], tmp_path) == 0
    assert OLDER not in page.read_text()
    assert page.read_text() != new


def test_page_without_a_stamp_counts_as_older(page: Path, tmp_path: Path) -> None:
    page.write_text(TEXT)
    assert main(["--check"], tmp_path) == 1
    write(page, TEXT, whole=False, root=tmp_path)
    assert page.read_text().startswith(f"# A page{OLDER}")


@pytest.mark.parametrize("name", PAGES)
def test_sources_of_a_page_are_there(name: str) -> None:
    assert (ROOT / name).is_file()
    for pattern in PAGES[name].sources:
        assert any(ROOT.glob(pattern)), pattern


def test_commit_is_dirty_if_the_sources_differ_from_it(tmp_path: Path, page: Path) -> None:
    def git(*command: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True, capture_output=True)

    def commit() -> str:
        write(page, TEXT, root=tmp_path)
        found = re.search(r"at commit (\S+) with", page.read_text())
        return found[1] if found else ""

    assert commit() == "unknown"
    git("init")
    git("add", ".")
    git("commit", "-m", "a source")
    clean = commit()
    # What the same run has written into other pages is no change of the sources.
    (tmp_path / "docs" / "other.md").write_text(TEXT)
    assert commit() == clean
    (tmp_path / "sb3compat" / "errors.py").write_text("one = 2\n")
    assert commit() == f"{clean}-dirty"
