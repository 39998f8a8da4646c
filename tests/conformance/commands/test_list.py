"""`sb3compat list`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sb3compat import cli
from sb3compat.conformance.checks.catalogue import checks_of
from tests.conformance.commands.shell import ROOT


def test_list_has_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    everything = capsys.readouterr().out
    assert cli.main(["list", "--family", "vec_env"]) == 0
    some = capsys.readouterr().out
    for check in checks_of():
        line = f"{check.severity:<8} {check.id} "
        assert line in everything
        assert check.contract in everything
        assert (line in some) or check.family == "vector_env"
    assert f"{len(checks_of('vec_env'))} checks" in some
    assert "masked_reset" in everything


def test_list_into_a_closed_pipe() -> None:
    done = subprocess.run(
        f"{sys.executable} -m sb3compat list | true",
        shell=True, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
