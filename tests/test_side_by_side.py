from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import side_by_side
from tests.side_by_side import Ended, Part, run, suite, summary

ROOT = Path(__file__).parents[1]
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


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


def test_no_more_run_at_once_than_there_are_slots(tmp_path: Path) -> None:
    log = tmp_path / "log"
    noting = f"import sys; print('{{}}', file=open({str(log)!r}, 'a'))"
    parts = [
        script(str(i), f"{noting.format(i)}; import asyncio; {noting.format(i)}") for i in "ab"
    ]
    assert [each.returncode for each in run(parts, slots=1)] == [0, 0]
    assert log.read_text().split() == ["a", "a", "b", "b"]


@needs_pipes
def test_as_many_run_at_once_as_there_are_slots(tmp_path: Path) -> None:
    """Opening a named pipe waits for the other end."""
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    parts = [script(mode, f"open({pipe!r}, {mode!r})") for mode in "rw"]
    assert [each.returncode for each in run(parts, slots=2)] == [0, 0]


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


def test_unknown_names_cannot_be_run_beside(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit, match="2"):
        side_by_side.main(["lint", "lnt"])
    assert "Expected some of lint, demo, got lnt." in capsys.readouterr().err


@needs_pipes
def test_ctrl_c_ends_every_process(tmp_path: Path) -> None:
    """The part holds a named pipe open, of which the other end sees when it is gone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    hold = (
        f"import os, signal; f = open({str(pipe)!r}, 'w'); print(os.getpid(), file=f, flush=True)"
    )
    driver = f"""
import sys
from tests import side_by_side
command = (sys.executable, "-c", {hold + "; signal.pause()"!r})
side_by_side.suite = lambda: [side_by_side.Part("part", command)]
sys.exit(side_by_side.main([]))
"""
    process = subprocess.Popen([sys.executable, "-c", driver], cwd=ROOT, stdout=subprocess.DEVNULL)
    with pipe.open() as held:
        part = int(held.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        os.set_blocking(held.fileno(), False)
        try:
            gone = os.read(held.fileno(), 1) == b""
        except BlockingIOError:
            os.kill(part, signal.SIGKILL)
            gone = False
    assert gone
