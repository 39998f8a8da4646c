from __future__ import annotations

import os

import pytest

from tests import profiles

profiles.load()

pytest_plugins = ["pytester"]

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # JAX starts threads, and a process with threads must not fork, which AsyncVectorEnv does by
    # default. So whatever brings in JAX comes last.
    items.sort(key=lambda item: item.get_closest_marker("jax") is not None)
