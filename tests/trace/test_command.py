"""`sb3compat trace`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sb3compat.cli import main

SYNC = ["CartPole-v1", "--vectorization-mode", "sync", "--rows", "1", "--episodes", "1"]


def test_trace_prints_every_api_and_writes_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg, html = tmp_path / "trace.svg", tmp_path / "trace.html"
    code = main(["trace", *SYNC, "--svg", str(svg), "--html", str(html)])
    out = capsys.readouterr().out
    assert code == 0
    for api in ("SB3 VecEnv", "Gymnasium NEXT_STEP", "SAME_STEP", "DISABLED"):
        assert api in out
        assert api in html.read_text("utf-8")
    assert svg.read_text("utf-8").startswith("<svg")


def test_files_are_written_although_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    html, read = tmp_path / "trace.html", os.pipe()
    os.close(read[0])
    command = [sys.executable, "-m", "sb3compat", "trace", *SYNC, "--html", str(html)]
    done = subprocess.run(command, stdout=read[1], stderr=subprocess.PIPE, text=True, check=False)
    os.close(read[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert "SAME_STEP" in html.read_text("utf-8")


@pytest.mark.parametrize(
    "command",
    [
        ["trace", *SYNC, "--svg"],
        ["check", "tests.conformance.tiny:TinyVecEnv", "--only", "dones_bool_array", "--markdown"],
    ],
)
def test_a_file_that_cannot_be_written_is_named(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "missing" / "file")
    assert main([*command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert f"sb3compat: Expected a file that can be written, got {str(path)!r}" in err
    assert ("TinyVecEnv" in out) == (command[0] == "check")  # its report is not lost


def test_what_looks_wrong_gives_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    target = "tests.conformance.tiny:NoTerminalObservation"
    assert main(["trace", target, "--episodes", "1"]) == 1
    assert "terminal_observation_iff_done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:make_env"], "there is no 'nowhere'"),
        (["CartPole-v1", "--html", "no/such/folder/page.html"], "a folder that exists"),
        ([*SYNC, "--rows", "9"], "rows to be a number from 1 to 3"),
        ([*SYNC, "--seed", "-1"], "Expected seed to be at least 0, got seed=-1. Pass 0 or more."),
        (["gymnasium:Env"], "Expected a VectorEnv or a VecEnv, or a function that makes one, got"),
        (["CartPol-v1"], "'CartPol-v1' cannot be made: NameNotFound"),
    ],
)
def test_wrong_use_gives_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
