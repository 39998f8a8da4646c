"""Calls of an environment before there is a record of any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sb3compat.conformance.findings import Family
from sb3compat.conformance.program.script import PRELUDE


def acting(env: Any, setup: str, actions: str) -> Callable[[], Any]:
    """Draws the actions of each step; to be called before the reset.

    Args:
        env: The environment, whose action space some ways to act sample from.
        setup: The statement to begin with, or nothing.
        actions: Source for the actions of each step.
    """
    names = {"env": env, "np": np, **PRELUDE}
    exec(setup, names)
    code = compile(actions, "<actions>", "eval")
    return lambda: eval(code, names)


def reset(env: Any, family: Family, seed: int | None) -> Any:
    """Reset all rows, with a seed unless it is None; returns what the environment returns."""
    if seed is None:
        return env.reset()
    if family == "vector_env":
        return env.reset(seed=seed)
    env.seed(seed)
    return env.reset()
