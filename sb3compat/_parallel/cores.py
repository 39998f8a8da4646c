"""How many processor cores this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def usable_cores(root: Path = _CGROUP, own: Path = _OWN) -> int:
    """The cores that this process may run on, limits of a container included; at least 1.

    Args:
        root: Where Linux shows the control groups.
        own: The file that names those of this process.
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
        lines = own.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "cpu" if controllers else root
        # Inside a container, the path may be that of the host, which is not to be seen.
        for folder in {top, *(top / parent for parent in _parents(path))}:
            quota = _quota_v1(folder) if controllers else _quota_v2(folder)
            if quota is not None:
                yield quota


def _parents(path: str) -> Iterator[str]:
    parts = [part for part in path.split("/") if part]
    return ("/".join(parts[:end]) for end in range(1, len(parts) + 1))


def _quota_v2(folder: Path) -> float | None:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return None if quota < 0 else quota / period
