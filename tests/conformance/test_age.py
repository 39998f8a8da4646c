"""The digests that say whether a page is older than the code that it is of."""

from __future__ import annotations

import pytest

from conformance.age import digest

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
