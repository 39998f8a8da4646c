"""A Ray cluster in this machine, for all tests that need one: it takes seconds to start."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.closing import close_all
from tests.interpreter import REPOSITORY
from tests.parallel.failing import on_ray, opened
from tests.parallel.teams import children, forked

STORE = 100 * 2**20  # bytes


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A cluster of two nodes; its disk counts as full, so that nothing is moved there."""
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        # What Ray's processes inherit: where this package and its tests are.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), *sys.path]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_SCHEDULER_EVENTS", "0")
        node = {"num_cpus": 2, "object_store_memory": STORE}
        config = {"local_fs_capacity_threshold": 0.0001, "health_check_failure_threshold": 1}
        head = {**node, "resources": {"near": 4}, "_system_config": config}
        made = Cluster(initialize_head=True, head_node_args=head)
        made.add_node(**node, resources={"far": 4})
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def connected(cluster: Any) -> Any:
    """The cluster, and this process connected to it."""
    import ray

    if not ray.is_initialized():
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    return cluster


@pytest.fixture
def unraisable_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drops what is raised where an object is forgotten, which an interrupt may be.

    Python only prints it; pytest keeps it, and all that its frames hold, until the test ends.
    """
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)


@pytest.fixture(autouse=True)
def _nobody_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """No worker process or blocked signal may be left once what was opened is closed."""
    yield
    close_all()
    if request.node.get_closest_marker("ray"):
        return
    gc.collect()
    assert not children()
    if hasattr(signal, "pthread_sigmask"):  # Windows has none
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.fixture(params=["processes", pytest.param("ray", marks=pytest.mark.ray)])
def open_in(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Opens an environment in worker processes, or in actors of the cluster."""
    if request.param == "processes":
        return partial(opened, make=forked)
    pytest.importorskip("ray", reason="needs Ray: pip install 'sb3compat[ray]'")
    request.getfixturevalue("connected")
    return partial(opened, make=on_ray)
