from __future__ import annotations

from pathlib import Path

import pytest

from conformance.targets import TARGETS
from conformance.targets.registry import EXPECTED, reasons

FILES = sorted(EXPECTED.glob("*.toml"))
EXPECTATIONS = {target.name: target.expected() for target in TARGETS.values()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_of_expected_failures_is_read_and_used(path: Path) -> None:
    known = reasons(path)
    assert known
    assert all("(https://" in reason for reason in known.values())
    users = [name for name, expected in EXPECTATIONS.items() if known.items() <= expected.items()]
    assert [name for name in users if f"{name}-".startswith(f"{path.stem}-")]
