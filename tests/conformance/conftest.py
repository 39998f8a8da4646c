"""What several modules on the kit need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sb3compat.conformance import contract
from sb3compat.conformance.checks.catalogue import checks_of


@pytest.fixture
def own_checks() -> Iterator[None]:
    """Forget the checks that a test registers."""
    checks_of()  # those of the kit are registered once
    before = dict(contract._REGISTRY)
    yield
    contract._REGISTRY.clear()
    contract._REGISTRY.update(before)
