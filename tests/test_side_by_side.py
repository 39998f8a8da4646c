from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests import side_by_side


def test_each_test_is_in_exactly_one_part(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n  jax: brings in JAX\n  ray: needs Ray")
    folders = ("", "new/", "conformance/", "conformance/checks/")
    paths = {f"tests/{folder}test_it.py": "" for folder in folders}
    for mark, homes in side_by_side.APART.items():
        paths |= {f"{home}/test_it.py": f"@pytest.mark.{mark}\n" for home in homes}
    for path, mark in paths.items():
        module = f"import pytest\ndef test_one(): ...\n{mark}def test_two(): ...\n"
        pytester.path.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        pytester.path.joinpath(path).write_text(module)

    def collected(*arguments: str) -> list[str]:
        options = ("--collect-only", "-q", "--import-mode=importlib", "-p", "no:cacheprovider")
        lines = pytester.runpytest_inprocess(*options, *arguments).outlines
        return [line for line in lines if "::" in line]

    everything = collected("tests")
    assert len(everything) == 2 * len(paths)
    in_parts = [name for part in side_by_side.SUITE.values() for name in collected(*part)]
    assert Counter(in_parts) == Counter(everything)


def test_test_that_no_part_would_run_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = ray: needs Ray")
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makepyfile("import pytest\n@pytest.mark.ray\ndef test_one(): ...\n")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*Expected tests with the mark ray in tests/parallel*"])


@pytest.mark.parametrize("failing", [(), ("kit",), ("lint",)])
def test_exit_status_is_that_of_a_failing_part(
    failing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit(len(sys.argv) - 1)")
    parts = {name: (*command, *(["x"] if name in failing else [])) for name in ("kit", "lint")}
    monkeypatch.setattr(side_by_side, "suite", lambda: [side_by_side.Part("kit", parts["kit"])])
    monkeypatch.setattr(side_by_side, "BESIDE", {"lint": parts["lint"]})
    assert side_by_side.main(["lint"]) == bool(failing)
