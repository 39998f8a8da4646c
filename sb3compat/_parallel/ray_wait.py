"""Waiting for the answers of Ray actors, in turns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import ray

from sb3compat._ipc.pipes import Deadline

# How long Ray may wait at once: it holds back what a signal handler raises until it returns.
_TURN_SECONDS = 1.0


def not_ready(refs: Iterable[Any], timeout: float | None) -> list[Any]:
    """Those of the references that are not ready within the time."""
    waiting = list(refs)
    deadline = Deadline(timeout)
    while waiting:
        left = deadline.left()
        ready = ready_in_turn(waiting, math.inf if left is None else left)
        waiting = [ref for ref in waiting if ref not in ready]
        if left == 0:
            break
    return waiting


def ready_in_turn(refs: list[Any], timeout: float) -> list[Any]:
    """Those of the references that are ready: all of them, or what there is after a turn."""
    try:
        ready: list[Any] = ray.wait(
            refs, num_returns=len(refs), timeout=min(timeout, _TURN_SECONDS)
        )[0]
    except SystemError as error:  # what Ray makes of what a signal handler has raised
        raise (error.__cause__ or error) from None
    return ready
