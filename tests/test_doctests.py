"""Every `Example:` in a docstring of the package runs as it is printed."""

from __future__ import annotations

import doctest
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

import sb3compat
from tests.profiles import nightly

pytest.importorskip("stable_baselines3", reason="some examples use SB3's classes")

# Importing these needs a library that this process is to stay without.
SKIPPED = ("sb3compat._to_sb3.backends.jax",)


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in pkgutil.walk_packages(sb3compat.__path__, "sb3compat."):
        if module.name not in (*SKIPPED, "sb3compat.__main__"):
            found = finder.find(import_module(module.name))
            yield from (test for test in found if test.examples)


EXAMPLES = {test.name: test for test in examples()}


# It runs all checks; a snippet of the README does so for each change.
SLOW = "sb3compat.conformance.run.entry.check_vec_env"


@pytest.mark.parametrize("name", [name for name in EXAMPLES if nightly() or name != SLOW])
def test_examples_print_their_expected_output(name: str) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    lines: list[str] = []
    runner.run(EXAMPLES[name], out=lines.append)
    assert runner.failures == 0, "".join(lines)
