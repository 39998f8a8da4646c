"""Environments that Ray's actors import; SB3, which takes seconds, is not imported with them."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from gymnasium.spaces import MultiBinary

from tests.to_sb3.test_faults import Failing


class Known(Failing):
    """Fails only if it is told to."""

    def __init__(self, row: int, how: str = "never") -> None:
        super().__init__(row, how)

    def loaded(self) -> list[str]:
        return [name for name in ("torch", "stable_baselines3") if name in sys.modules]

    def group(self) -> str | None:
        """The placement group of the actor."""
        import ray

        group: str | None = ray.get_runtime_context().get_placement_group_id()
        return group


class Large(Known):
    """Observations and infos of this many bytes."""

    def __init__(self, row: int, size: int, info_size: int = 0) -> None:
        super().__init__(row)
        self.observation_space = MultiBinary(size)  # which is small itself
        self.size, self.info_size = size, info_size

    def reset(self, **_: Any) -> Any:
        return np.zeros(self.size, np.int8), {}

    def step(self, _: Any) -> Any:
        return np.zeros(self.size, np.int8), 0.0, False, False, {"x": bytes(self.info_size)}


def made_in(pid: int) -> Odd:
    if os.getpid() != pid:
        raise ValueError("not a number")
    return Odd()


class Odd:
    """Can be unpickled in its own process only."""

    def __reduce__(self) -> Any:
        return made_in, (os.getpid(),)


class WithOdd(Known):
    def odd(self) -> Odd:
        return Odd()

    def step(self, action: Any) -> Any:
        *result, info = super().step(action)
        return *result, info | ({"odd": Odd()} if action else {})
