from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import side_by_side
from tests.side_by_side import Ended, Part, run, suite, summary

ROOT = Path(__file__).parents[1]


def script(name: str, text: str) -> Part:
    return Part(name, (sys.executable, "-c", text))


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


def test_the_parts_are_of_this_suite() -> None:
    for part in suite():
        paths = [each.rpartition("=")[2] for each in part.command if "tests" in each]
        assert paths
        assert all((ROOT / path).is_dir() for path in paths)


def test_each_output_is_shown_whole_and_a_failure_is_named(capfd: pytest.CaptureFixture) -> None:
    lines = "for i in range(3): print(i, flush=True)\n"
    parts = [script("one", lines), script("two", lines + "import sys; sys.exit('3 failed')")]
    ended = run(parts, slots=2)
    shown = capfd.readouterr().out
    assert "---- one ----\n0\n1\n2\n" in shown
    assert "---- two ----\n0\n1\n2\n3 failed\n" in shown
    assert [each.returncode for each in ended] == [0, 1]
    said = summary(
        [Ended("one", 0, 1.2, "x\n== 7 passed ==\n"), Ended("two", 1, 65.0, "3 failed\n")]
    )
    assert said == "one (1 s): ok; 7 passed\ntwo (65 s): FAILED, exit status 1; 3 failed"


@pytest.mark.parametrize("failing", [(), ("kit",), ("lint",)])
def test_exit_status_is_that_of_a_failing_part(
    failing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def ended(parts: list[Part]) -> list[Ended]:
        asked.extend(part.name for part in parts)
        return [Ended(part.name, part.name in failing, 1.0, "done") for part in parts]

    monkeypatch.setattr(side_by_side, "run", ended)
    assert side_by_side.main(["lint", "demo"]) == bool(failing)
    assert asked == [*side_by_side.SUITE, "lint", "demo"]
