"""The digests that say whether a page is older than the code that it is of."""

from __future__ import annotations

import json

import pytest

from conformance.age import ROOT, digest, imported, path_of
from tests.interpreter import run

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
    done = run("-W", "ignore", "-c", RUN)
    assert done.returncode == 0, done.stderr
    loaded = {path_of(name) for name in json.loads(done.stdout.splitlines()[-1])}
    # What is in a package itself is imported under names of its own, where it is used.
    loaded = {path for path in loaded if not path.endswith("__init__.py")}
    checks = (ROOT / "sb3compat/conformance/checks").rglob("[!_]*.py")
    assert loaded == imported(
        [path_of("conformance.matrix.outcomes"), *(str(path.relative_to(ROOT)) for path in checks)]
    )
