"""The digests that say whether a page is older than the code that it is of."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conformance.age import PAGES, ROOT, digest, imported, path_of, up_to_date, with_age

SOURCE = '''
"""What it is for."""

from conformance.age import imported
from package import name


class Env:
    """An environment."""

    def step(self, action: int = 3) -> str:
        return f"{action!r:>{4}}" if action else b"" or name
'''


def test_it_is_the_same_in_each_version_of_python() -> None:
    assert digest(SOURCE) == "071f526f7345ce2d"


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("What it is for.", "What else it is for.", False),
        ("An environment.", "Another one.", False),
        ("        return", "        # Why?\n        return", False),
        ("action: int = 3", "\n        action: int = 3,\n    ", False),
        # A file of this repository that has moved.
        ("from conformance.age", "from conformance.results", False),
        ("import imported", "import digest", True),
        ("from package", "from another", True),
        ("= 3", "= 4", True),
        ("= 3", "= 3.0", True),
        ('b""', '""', True),
        ("!r", "", True),
        ("{4}", "{5}", True),
        ("if action", "if not action", True),
        ("def step", "async def step", True),
        ("class Env", "class Env(name)", True),
        ("        return", '        "no docstring"; "nor this"\n        return', True),
    ],
)
def test_what_a_module_does_counts(before: str, after: str, counts: bool) -> None:
    assert SOURCE.count(before) == 1
    assert (digest(SOURCE.replace(before, after)) != digest(SOURCE)) == counts


def test_a_page_says_that_it_is_older_for_as_long_as_it_is() -> None:
    older = with_age("# Title\n\nText.\n\nMore.\n", True, "make it")
    line = "*This page is older than the code that is here.* Run `make it`."
    assert older == f"# Title\n\n{line}\n\nText.\n\nMore.\n"
    assert with_age(older, True, "make it") == older
    assert with_age(older, False, "make it") == "# Title\n\nText.\n\nMore.\n"


RUN = """
import json, sys
from dataclasses import replace
from conformance.matrix.outcomes import examine_all
from conformance.matrix.sections import sections

for section in sections()[:2]:
    examine_all(replace(section, checks=section.checks[:1]), section.mutants[0])
print(json.dumps([name for name in sys.modules if name.startswith(("sb3compat.", "conformance."))]))
"""


def test_all_that_a_run_imports_has_a_digest() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = {path_of(name) for name in json.loads(done.stdout.splitlines()[-1])}
    # What is in a package itself is imported under names of its own, where it is used.
    loaded = {path for path in loaded if not path.endswith("__init__.py")}
    checks = (ROOT / "sb3compat/conformance/checks").rglob("[!_]*.py")
    assert loaded == imported(
        [path_of("conformance.matrix.outcomes"), *(str(path.relative_to(ROOT)) for path in checks)]
    )


@pytest.mark.parametrize("path", PAGES)
def test_each_page_says_whether_it_is_older(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert text == up_to_date(path), f"{path}; run: python -m conformance.age"
    assert "<!-- kit: " in text
