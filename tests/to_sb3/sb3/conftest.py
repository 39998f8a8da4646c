"""The vector environments to adapt, and one thread for torch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from gymnasium.vector import AutoresetMode

from tests.native import NativeEnv
from tests.profiles import nightly
from tests.to_sb3.sb3.training import SOURCES, Source, one_thread

# What the features of SB3 ask of an environment is the same for each, and is compared for all of
# them elsewhere.
SOME = list(SOURCES) if nightly() else ["sync-same", "async-next"]


@pytest.fixture(params=SOME)
def source(request: pytest.FixtureRequest) -> Source:
    return SOURCES[request.param]


@pytest.fixture(params=[*SOME, "native"])
def any_source(request: pytest.FixtureRequest) -> Source:
    """All sources, and one without sub-environments."""
    native: Source = partial(NativeEnv, mode=AutoresetMode.NEXT_STEP)  # type: ignore[arg-type]
    return SOURCES.get(str(request.param), native)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in one order, so that equal inputs give equal bits."""
    with one_thread():
        yield
