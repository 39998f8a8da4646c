from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a test: no deadlines, and no complaint about slow drawing.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

pytest_plugins = ["pytester"]

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # JAX starts threads, and a process with threads must not fork, which AsyncVectorEnv does by
    # default. So whatever brings in JAX comes last.
    items.sort(key=lambda item: item.get_closest_marker("jax") is not None)
