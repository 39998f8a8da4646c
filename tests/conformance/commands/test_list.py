"""`sb3compat list` and `sb3compat explain`."""

from __future__ import annotations

import pytest

from sb3compat import cli
from sb3compat.conformance.checks.catalogue import checks_of


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


def test_explain_has_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    for check in checks_of():
        assert cli.main(["explain", check.id]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"{check.id}\n\n")
        assert check.source in out
