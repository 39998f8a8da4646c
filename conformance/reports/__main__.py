"""Run the scripts of the reports, and again on patched copies: `python -m conformance.reports`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from conformance.reports.pages import pages, patched, said_by


def main(names: list[str]) -> int:
    """Run the named reports, or all; 1 if a script does not show its defect, or a patch no help."""
    wrong = 0
    for page in pages():
        if names and page.name not in names:
            continue
        if not page.installed():
            print(f"{page.name}: {page.package} {page.version} is not installed")
            continue
        scripts = [defect.script for defect in page.defects]
        before = said_by(scripts)
        with tempfile.TemporaryDirectory() as folder:
            after = said_by(scripts, [folder]) if patched(page, Path(folder)) else None
        for defect, was, now in zip(page.defects, before, after or before, strict=True):
            shown = was.startswith("AssertionError")
            wrong += not shown or (after is not None and bool(now) and bool(defect.patches))
            then = "no patch tried" if after is None else f"patched: {now or 'passes'}"
            print(f"{page.name}: {defect.title}\n  {was or 'passes'}\n  {then}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
