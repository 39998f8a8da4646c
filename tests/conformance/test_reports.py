from __future__ import annotations

from pathlib import Path

import pytest

from conformance.reports.pages import pages, patched, said_by
from tests.profiles import some

PAGES = {page.name: page for page in pages()}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """What each script ends with; all run in one process, as their imports take the most time."""
    scripts = [d.script for page in PAGES.values() if page.installed() for d in page.defects]
    # Those that fork come first: other libraries have threads.
    scripts.sort(key=lambda script: "__main__" not in script)
    return dict(zip(scripts, said_by(scripts), strict=True))


@pytest.mark.parametrize("name", PAGES)
def test_each_script_of_a_report_shows_its_defect(name: str, said: dict[str, str]) -> None:
    page = PAGES[name]
    if not page.installed():
        pytest.skip(f"{page.package} {page.version} is not installed")
    for defect in page.defects:
        end = said[defect.script]
        assert end.startswith("AssertionError"), f"{defect.title}: {end or 'passes'}"


@pytest.mark.parametrize("name", some(sorted(PAGES), 0))
def test_the_patches_of_a_report_mend_what_it_shows(name: str, tmp_path: Path) -> None:
    page = PAGES[name]
    if not page.installed() or not patched(page, tmp_path):
        pytest.skip("the package is not there to be patched")
    last = max(i for i, defect in enumerate(page.defects) if defect.patches)
    mended = page.defects[: last + 1]
    said = said_by((defect.script for defect in mended), [str(tmp_path)])
    assert not [end for end in said if end]
