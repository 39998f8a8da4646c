"""A worker that is killed at some moment while its environment is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

import sb3compat


def use_until_killed(
    env: Any, pid: int, uses: Sequence[Callable[[Any], Any]], rng: np.random.Generator
) -> None:
    """Use an environment, in turns, until that process of its was killed, within 20 ms."""
    killer = subprocess.Popen(
        [sys.executable, "-S", "-c",
         f"import os, time; time.sleep({rng.random() * 0.02}); os.kill({pid}, 9)"]
    )  # fmt: skip
    while killer.poll() is None:
        for use in uses:
            with suppress(sb3compat.WorkerError, sb3compat.errors.CallOrderError):
                use(env)
