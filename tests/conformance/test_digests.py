"""The digests that say whether the kill matrix is of the sources as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from conformance.matrix.digests import ROOT, Digests, changed, differences, digest, path_of, present

SOURCE = '''
"""What it is for."""

from package import name


class Env:
    """An environment."""

    def step(self, action: int = 3) -> str:
        """Go on.

        For a while.
        """
        return f"{action!r:>{4}}" if action else b"" or name
'''


def test_it_is_the_same_in_each_version_of_python() -> None:
    assert digest(SOURCE) == "1222cd5c8fd55f58"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("What it is for.", "What else it is for."),
        ("An environment.", "Another one."),
        ("For a while.", "On and on."),
        ('        return f"', '        # Why?\n        return f"'),
        ("action: int = 3", "\n        action: int = 3,\n    "),
        ('b""', "b''"),
    ],
)
def test_what_changes_nothing_that_a_module_does_does_not_count(before: str, after: str) -> None:
    assert SOURCE.count(before) == 1
    assert digest(SOURCE.replace(before, after)) == digest(SOURCE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("= 3", "= 4"),
        ("= 3", "= 3.0"),
        ('b""', '""'),
        ("!r", ""),
        ("{4}", "{5}"),
        ("if action", "if not action"),
        ("import name", "import other as name"),
        ("from package", "from another"),
        ("def step", "async def step"),
        ("class Env", "class Env(name)"),
        ("    def step", "    @name\n    def step"),
        ("        return", '        "not a docstring"\n        return'),
    ],
)
def test_what_a_module_does_counts(before: str, after: str) -> None:
    assert SOURCE.count(before) == 1
    assert digest(SOURCE.replace(before, after)) != digest(SOURCE)


RECORDED = Digests({"a.py": "1", "b.py": "2"}, {"c.py": "3"}, {"d.py": "4"})


def test_a_file_that_has_moved_has_not_changed() -> None:
    moved = replace(RECORDED, checks={"folder/c.py": "3"})
    assert changed(RECORDED.checks, moved.checks) == set()
    assert differences(RECORDED, moved) == []
    assert differences(RECORDED, RECORDED) == []


def test_each_difference_is_named() -> None:
    found = Digests({"a.py": "5", "e.py": "6"}, {"c.py": "3"}, {})
    assert differences(RECORDED, found) == [
        "a.py (core) has changed",
        "e.py (core) is new",
        "b.py (core) is gone",
        "d.py (mutants) is gone",
    ]


RUN = """
import json, sys
from dataclasses import replace
from conformance.matrix.outcomes import examine_all
from conformance.matrix.specimens import sections

for section in sections():
    examine_all(replace(section, checks=section.checks[:3]), section.mutants[0])
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
    found = present()
    assert loaded == {*found.core, *found.checks, *found.mutants}
    assert len(found.checks) >= 18
    assert len(found.mutants) >= 6
