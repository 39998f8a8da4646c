"""How many processor cores this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CGROUP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def usable_cores(root: Path = _CGROUP, own: Path = _OWN) -> int:
    """The cores that this process may run on, limits of a container included; at least 1.

    The limits are those of control groups of the second version, which containers have had since
    2021 or so. Elsewhere, pass `workers`.

    Args:
        root: Where Linux shows the control groups.
        own: The file that names that of this process.
    """
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        cores = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count()
    return max(1, min([cores or 1, *map(math.ceil, _quotas(root, own))]))


def _quotas(root: Path, own: Path) -> Iterator[float]:
    """How much processor time per second each control group above this process allows."""
    try:
        path = PurePosixPath(own.read_text().rpartition("0::/")[2].strip())
    except OSError:  # not Linux
        return
    # Inside a container, the path may be that of the host, which is not to be seen.
    for folder in (path, *path.parents):
        try:
            quota, period = (root / folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            yield int(quota) / int(period)
