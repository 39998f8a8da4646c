"""Puts the fragments in `changelog.d/` together as the section "Unreleased" of CHANGELOG.md.

make changelog                        writes the section anew
python docs/changelog.py --check      fails if it is out of date
python docs/changelog.py --release 0.1.0
                                      makes it the section of a release, and removes the fragments
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
FRAGMENTS = ROOT / "changelog.d"
UNRELEASED = "## [Unreleased]"
MARK = "<!-- The section below is made from changelog.d/: make changelog -->\n"


def rendered() -> str:
    """What towncrier makes of the fragments, without the title."""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "Unreleased"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.partition(UNRELEASED)[2].strip() + "\n"


def with_section(text: str, heading: str, body: str) -> str:
    """The changelog with this section in place of the unreleased one.

    Above the section of a release comes an empty one for what is not released yet.
    """
    before, after = text.split(MARK)
    older = re.search(r"^## (?!\[Unreleased\])", after, re.MULTILINE)
    sections = [] if heading == UNRELEASED else [UNRELEASED]
    sections.append(f"{heading}\n\n{body.strip()}")
    if older:
        sections.append(after[older.start() :].strip())
    return before + MARK + "".join(f"\n{section}\n" for section in sections)


def main() -> int:
    """Write the section, or compare it."""
    parser = argparse.ArgumentParser(description="The changelog from its fragments.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--release", metavar="VERSION")
    given = parser.parse_args()
    text = CHANGELOG.read_text(encoding="utf-8")
    heading = f"## [{given.release}] - {date.today()}" if given.release else UNRELEASED
    new = with_section(text, heading, rendered())
    if given.check:
        if text != new:
            print("Expected CHANGELOG.md as changelog.d/ has it, got another. Run: make changelog")
        return int(text != new)
    CHANGELOG.write_text(new, encoding="utf-8", newline="\n")
    if given.release:
        for fragment in FRAGMENTS.glob("*.*.md"):
            fragment.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
