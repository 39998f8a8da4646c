"""`sb3compat explain`."""

from __future__ import annotations

import pytest

from sb3compat import cli
from sb3compat.conformance.checks.catalogue import checks_of


def test_explain_has_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    for check in checks_of():
        assert cli.main(["explain", check.id]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"{check.id}\n\n")
        assert check.source in out
