"""Pages that are generated from runs name the code that they describe: `python -m versions.stamps`.

`write` puts a line below the title of a page: when, at which commit and with which versions it was
generated, and a digest of the sources that it describes. If these sources have changed since,
another line says that the page is older. `python -m versions.stamps` adds or removes that line.
With `--check`, as `make lint` calls it, it writes nothing, and fails if the line of a page is
missing or wrong. `make bench` prints numbers that people copy into a page, which
`python -m versions.stamps PAGE` stamps.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from conformance.age import together

ROOT = Path(__file__).parents[1]
PACKAGES = ("gymnasium", "stable-baselines3", "numpy", "torch", "jax", "ray")

_STAMP = re.compile(r"^\*Made on .* of the sources `(\w+)`\.\*\n\n", re.MULTILINE)
_OLDER = re.compile(r"^\*\*This page was generated before .*\*\*\n\n", re.MULTILINE)


class Page(NamedTuple):
    """A page, and what it depends on.

    Attributes:
        command: Makes it.
        sources: Patterns of the files that it judges.
    """

    command: str
    sources: tuple[str, ...]


# Commands are judged by the tests only, which run on each pair of versions.
ADAPTERS = (
    "sb3compat/__init__.py",
    "sb3compat/errors.py",
    "sb3compat/_[!t]*/**/*.py",
    "sb3compat/_to_*/**/*.py",
)
KIT = (
    "sb3compat/conformance/*.py",
    "sb3compat/conformance/[!c]*/**/*.py",
    "sb3compat/conformance/checks/**/*.py",
)
PAGES = {
    "benchmarks/RESULTS.md": Page("make bench", ADAPTERS),
    "conformance/RESULTS.md": Page(
        "make conformance", (*ADAPTERS, *KIT, "conformance/targets/*.py")
    ),
    "conformance/UNSEEN.md": Page("make unseen", (*KIT, "conformance/specimens/unseen/*.py")),
    "docs/explanation/how-it-holds-up.md": Page("make endurance", (*ADAPTERS, "endurance/*.py")),
    "docs/reference/kill-matrix.md": Page(
        "make matrix", (*KIT, "conformance/specimens/*.py", "conformance/specimens/broken/*.py")
    ),
    "docs/reference/performance.md": Page("make bench", ADAPTERS),
    "docs/reference/training-scripts.md": Page("make real", (*ADAPTERS, "tests/real/*.py")),
    "docs/reference/versions.md": Page("make pairs", ("sb3compat/**/*.py",)),
}


def digest(page: str, root: Path = ROOT) -> str:
    """A digest of the sources that a page judges, as they are now.

    Args:
        page: The path of the page, from the root of the repository.
        root: That root.
    """
    paths = {path for each in PAGES[page].sources for path in root.glob(each)}
    return together((str(path.relative_to(root)) for path in paths), root)


def write(path: Path, text: str, *, whole: bool = True, root: Path = ROOT) -> None:
    """Write a page, stamped, with the line that says so if its sources have changed since.

    Args:
        path: The page. One that is not in `PAGES`, such as a copy elsewhere, gets no stamp.
        text: What it says, without a stamp.
        whole: Whether all of it is of the present sources; otherwise the stamp stays as it was.
        root: The root of the repository.
    """
    name = _name_of(path, root)
    if name:
        old = _STAMP.search(path.read_text(encoding="utf-8")) if path.exists() else None
        stamp = _stamp(name, root) if whole else old[0] if old else ""
        text = marked(name, _below_title(text, stamp), root)
    path.write_text(text, encoding="utf-8", newline="\n")


def bare(text: str) -> str:
    """A page as it was before it was stamped."""
    return _STAMP.sub("", _OLDER.sub("", text))


def marked(page: str, text: str, root: Path = ROOT) -> str:
    """The text of a page, with the line that it is older if it is, and without it if not."""
    text = _OLDER.sub("", text)
    stamp = _STAMP.search(text)
    if stamp is not None and stamp[1] == digest(page, root):
        return text
    line = (
        "**This page was generated before the latest changes to the code that it describes: "
        f"run `{PAGES[page].command}` to update it.**\n\n"
    )
    return _below_title(text, line)


def _below_title(text: str, line: str) -> str:
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{line}{rest}"


def _stamp(page: str, root: Path) -> str:
    return (
        f"*Made on {date.today()} at commit {_commit(page, root)} with {_versions()}; of the "
        f"sources `{digest(page, root)}`.*\n\n"
    )


def _commit(page: str, root: Path) -> str:
    """The commit; with `-dirty` if the sources of this page are other than there."""
    commit = _git(root, "rev-parse", "--short", "HEAD")
    sources = (f":(glob){each}" for each in PAGES[page].sources)
    dirty = commit and _git(root, "status", "--porcelain", "--", *sources)
    return f"{commit}-dirty" if dirty else commit or "unknown"


def _git(root: Path, *command: str) -> str:
    done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _versions() -> str:
    found = {each.name.lower().replace("_", "-"): each.version for each in metadata.distributions()}
    # `make pairs` runs where nothing is installed.
    named = [f"{name} {found[name]}" for name in PACKAGES if name in found]
    return ", ".join([f"Python {platform.python_version()}", *named])


def _name_of(path: Path, root: Path) -> str | None:
    """The name of a page in `PAGES`; None for another file."""
    resolved, base = path.resolve(), root.resolve()
    name = resolved.relative_to(base).as_posix() if resolved.is_relative_to(base) else ""
    return name if name in PAGES else None


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Mark the pages, or see whether they are; 1 if one is not."""
    parser = argparse.ArgumentParser(prog="python -m versions.stamps", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="stamp these, as made just now")
    given = parser.parse_args(arguments)
    if unknown := set(given.pages) - PAGES.keys():
        parser.error(f"Expected some of {', '.join(PAGES)}, got {', '.join(sorted(unknown))}.")
    for page in given.pages:
        write(root / page, bare((root / page).read_text(encoding="utf-8")), root=root)
    wrong = []
    for page in PAGES:
        text = (root / page).read_text(encoding="utf-8")
        new = marked(page, text, root)
        if new != text:
            wrong.append(page)
            if not given.check:
                (root / page).write_text(new, encoding="utf-8", newline="\n")
    if wrong and given.check:
        print("Expected each page to say correctly whether it is older than the code that it "
              f"describes, got wrong lines in {', '.join(wrong)}. "
              "Run: python -m versions.stamps")  # fmt: skip
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
