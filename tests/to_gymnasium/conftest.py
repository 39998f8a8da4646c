"""The adapter over each kind of `VecEnv`."""

from __future__ import annotations

from typing import Any

import pytest

import sb3compat
from tests.envs import fns
from tests.lockstep_back import NAMES, SOURCES


@pytest.fixture(params=SOURCES, ids=NAMES)
def envs(request: pytest.FixtureRequest) -> Any:
    return sb3compat.to_gymnasium(request.param(fns()))
