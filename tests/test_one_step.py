"""The page that follows one step through each source names what runs, in that order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import sb3compat
from tests.parallel.teams import forked

ROOT = Path(sb3compat.__file__).parent
PAGE = ROOT.parent / "docs" / "explanation" / "one-step.md"
# They convert values and read names at many places of each walk: the page says so once.
EVERYWHERE = ("_convert/", "_upstream/")
Walk = dict[str, list[str]]


def one() -> gym.Env[Any, Any]:
    return gym.make("CartPole-v1")


def sb3(name: str) -> Any:
    return getattr(pytest.importorskip("stable_baselines3.common.vec_env"), name)


SOURCES: dict[str, Callable[[], Any]] = {
    "A bare SyncVectorEnv to SB3": lambda: sb3compat.to_sb3(SyncVectorEnv([one] * 2)),
    "A bare AsyncVectorEnv to SB3": lambda: sb3compat.to_sb3(AsyncVectorEnv([one] * 2)),
    "A native environment to SB3": lambda: sb3compat.to_sb3(
        gym.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    ),
    "A wrapped environment to SB3": lambda: sb3compat.to_sb3(
        RecordEpisodeStatistics(SyncVectorEnv([one]))
    ),
    "ParallelVecEnv": lambda: forked([one] * 2, 2),
    "A DummyVecEnv to Gymnasium": lambda: sb3compat.to_gymnasium(sb3("DummyVecEnv")([one] * 2)),
    "A SubprocVecEnv to Gymnasium": lambda: sb3compat.to_gymnasium(sb3("SubprocVecEnv")([one] * 2)),
    "A ParallelVecEnv to Gymnasium": lambda: sb3compat.to_gymnasium(forked([one] * 2, 2)),
    "A wrapped VecEnv to Gymnasium": lambda: sb3compat.to_gymnasium(
        sb3("VecNormalize")(sb3("DummyVecEnv")([one] * 2))
    ),
}


def sections() -> dict[str, Walk]:
    """What the page says: by heading, the files in order, each with the functions it names."""
    found: dict[str, Walk] = {}
    for heading, *lines in (part.splitlines() for part in PAGE.read_text().split("\n## ")[1:]):
        items = [re.findall(r"`([^`]+)`", line) for line in lines if re.match(r"\d+\. `", line)]
        found[heading] = {file: names for file, *names in items}
    return found


@contextmanager
def recorded() -> Iterator[Walk]:
    """The functions of this package that are called meanwhile, by file."""
    walk: Walk = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            file = path.relative_to(ROOT).as_posix()
            if not file.startswith(EVERYWHERE):
                walk.setdefault(file, []).append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        yield walk
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("heading", sorted({*SOURCES, *sections()}))
def test_page_follows_the_step(heading: str) -> None:
    env = SOURCES[heading]()
    env.reset()
    actions = np.zeros(env.num_envs, np.int64)
    env.step(actions)
    with recorded() as walk:
        if hasattr(env, "step_async"):
            env.step_async(actions)
            env.step_wait()
        else:
            env.step(actions)
    env.close()
    said = sections()[heading]
    assert list(said) == list(walk)
    for file, names in said.items():
        assert set(names) <= set(walk[file]), file
