"""The examples of the documentation: written for Gymnasium, run on SB3's environments."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.profiles import some

pytest.importorskip("stable_baselines3")

ROOT = Path(sb3compat.__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mode", some(["NextStep", "SameStep"]))
def test_ppo_in_a_single_file_learns(mode: str) -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv

    ppo = load("ppo_single_file")
    vec_env = DummyVecEnv([lambda: gym.make("CartPole-v1")] * 8)
    returns = ppo.train(sb3compat.to_gymnasium(vec_env, autoreset_mode=mode), 30_000)
    assert np.mean(returns[:50]) < 40
    assert np.mean(returns[-20:]) > 120


def test_ppo_learns_the_same_from_both_environments() -> None:
    """The same returns from `SyncVectorEnv`, episode by episode."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    ppo = load("ppo_single_file")
    fns = [lambda: gym.make("CartPole-v1")] * 4
    for mode in ("SameStep", "NextStep"):
        ours = ppo.train(sb3compat.to_gymnasium(DummyVecEnv(fns), autoreset_mode=mode), 4_096)
        theirs = ppo.train(gym.vector.SyncVectorEnv(fns, autoreset_mode=mode), 4_096)
        assert len(ours) > 50
        assert ours == theirs


def test_skrl_trains_on_vec_normalize(tmp_path: Path) -> None:
    for name in ("skrl", "tensorboard"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}")
    done = subprocess.run(
        [sys.executable, EXAMPLES / "skrl_vec_normalize.py", "300"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "trained for 300 steps of 4 rows" in done.stdout
    assert "1204 observations normalised\nweights changed" in done.stdout
