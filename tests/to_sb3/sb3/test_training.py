"""Training gives the same weights as over `DummyVecEnv`."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import sb3compat
from tests.covering import covering
from tests.envs import Identity
from tests.profiles import nightly
from tests.to_sb3.driving import MODES, made
from tests.to_sb3.sb3.trainings import TRAININGS, EnvFns, check_weights

pytest.importorskip("stable_baselines3", reason="is about the features of stable-baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv


def adapter(fns: EnvFns) -> Any:
    """SB3's own class, presented to Gymnasium, in one of Gymnasium's wrappers."""
    return Identity(sb3compat.to_gymnasium(DummyVecEnv(fns), autoreset_mode="Disabled"))


SOURCES: dict[str, Any] = {
    **{f"sync {mode.name}": partial(made, "sync", mode=mode) for mode in MODES},
    "async": partial(made, "async"),
    "async unshared": partial(made, "async unshared"),
    # Under a wrapper, the vector environment's own `step` and `reset` are used.
    "sync wrapped": partial(made, "sync wrapped"),
    "adapter": adapter,
}
# Equal streams, which are compared elsewhere, give equal weights.
IN_CI = [
    ("ppo", "async"),
    ("ppo-dict", "sync wrapped"),
    ("dqn", "sync SAME_STEP"),
    ("sac", "adapter"),
    ("her", "async unshared"),
    ("a2c", "sync NEXT_STEP"),
]
EVERY = [(name, source) for name in TRAININGS for source in SOURCES]


@pytest.mark.parametrize(("name", "source"), covering(EVERY) if nightly() else IN_CI)
# In `ppo-dict`, the agent may well stand where it started between two episodes.
@pytest.mark.filterwarnings("ignore:The last observation of row")
def test_training_gives_the_same_weights(name: str, source: str) -> None:
    check_weights(name, lambda fns: sb3compat.to_sb3(SOURCES[source](fns)))
