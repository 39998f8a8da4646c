from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests import side_by_side


def test_each_test_is_in_exactly_one_part(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = jax: brings in JAX")
    module = "import pytest\ndef test_one(): ...\n@pytest.mark.jax\ndef test_two(): ...\n"
    paths = ("tests/test_a.py", "tests/to_sb3/test_b.py", "tests/new/test_c.py")
    paths = (*paths, "tests/conformance/test_d.py", "tests/conformance/checks/test_e.py")
    for path in paths:
        pytester.path.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        pytester.path.joinpath(path).write_text(module)

    def collected(*arguments: str) -> list[str]:
        options = ("--collect-only", "-q", "--import-mode=importlib", "-p", "no:cacheprovider")
        lines = pytester.runpytest_inprocess(*options, *arguments).outlines
        return [line for line in lines if "::" in line]

    everything = collected("tests")
    assert len(everything) == 10
    in_parts = [name for part in side_by_side.SUITE.values() for name in collected(*part)]
    assert Counter(in_parts) == Counter(everything)


@pytest.mark.parametrize("failing", [(), ("kit",), ("lint",)])
def test_exit_status_is_that_of_a_failing_part(
    failing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit(len(sys.argv) - 1)")
    parts = {name: (*command, *(["x"] if name in failing else [])) for name in ("kit", "lint")}
    monkeypatch.setattr(side_by_side, "suite", lambda: [side_by_side.Part("kit", parts["kit"])])
    monkeypatch.setattr(side_by_side, "BESIDE", {"lint": parts["lint"]})
    assert side_by_side.main(["lint"]) == bool(failing)
