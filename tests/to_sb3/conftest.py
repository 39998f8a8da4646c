"""Closes what a test has opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.to_sb3.backends.libraries import opened


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """EnvPool's and ale-py's threads live on until the environment is closed."""
    yield
    while opened:
        opened.pop().close()
