"""The vector environments to adapt, and one thread for torch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from gymnasium.vector import AutoresetMode

from tests.native import NativeEnv
from tests.to_sb3.sb3.training import SOURCES, Source


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Source:
    return SOURCES[request.param]


@pytest.fixture(params=[*SOURCES, "native"])
def any_source(request: pytest.FixtureRequest) -> Source:
    """All sources, and one without sub-environments."""
    native: Source = partial(NativeEnv, mode=AutoresetMode.NEXT_STEP)  # type: ignore[arg-type]
    return SOURCES.get(str(request.param), native)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
