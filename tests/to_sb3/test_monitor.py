"""Monitored environments, in this process and in workers, as SB3's `make_vec_env` makes them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from sb3compat._to_sb3.monitor import EpisodeMonitor
from tests.envs import BOX, DISCRETE, Script, ScriptedEnv, WorkerReport

env_util: Any = pytest.importorskip("stable_baselines3.common.env_util")
vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
monitor: Any = pytest.importorskip("stable_baselines3.common.monitor")


def scripted(row: int = 0) -> ScriptedEnv:
    return ScriptedEnv(Script(BOX, DISCRETE, lengths=(2, 3), endings=("truncated", "both")), row)


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_monitor_files_hold_every_episode(mode: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="SB3's load_results needs pandas")
    folder = tmp_path / "new" / "folder"
    env = sb3compat.make_vec_env(
        "CartPole-v1", 2, seed=1, monitor_dir=str(folder), vectorization_mode=mode
    )
    env.reset()
    returns: list[float] = []
    for _ in range(100):
        returns += [i["episode"]["r"] for i in env.step(np.zeros(2, int))[3] if "episode" in i]
    env.close()
    results = monitor.load_results(str(folder))
    assert sorted(results["r"]) == sorted(returns)
    assert len(returns) > 10


@pytest.mark.parametrize("mode", [None, "sync", "async"])
@pytest.mark.parametrize(
    "monitor_kwargs",
    [
        {"override_existing": False},
        {"info_keywords": ()},
        {"reset_keywords": ()},
        {"allow_early_resets": True},
    ],
)
def test_monitor_arguments_work_as_in_sb3(
    mode: Any, monitor_kwargs: dict[str, Any], tmp_path: Path
) -> None:
    """Two runs into one folder leave the same files as SB3's function, in the default mode too."""
    makers = {
        "theirs": env_util.make_vec_env,
        "ours": partial(sb3compat.make_vec_env, vectorization_mode=mode),
    }
    written = {}
    for name, make in makers.items():
        folder = tmp_path / name
        for run in range(2):
            env = make(
                "CartPole-v1",
                2,
                seed=run,
                monitor_dir=str(folder),
                monitor_kwargs=monitor_kwargs,
            )
            env.reset()
            for _ in range(30):
                env.step(np.zeros(2, int))
            env.close()
        written[name] = {
            # Returns and lengths, without times.
            file.name: [line.split(",")[:2] for line in file.read_text().splitlines()[2:]]
            for file in folder.iterdir()
        }
    assert written["ours"] == written["theirs"]


@pytest.mark.parametrize("mode", [None, "sync", "async"])
def test_unknown_monitor_arguments_are_refused(mode: Any) -> None:
    def use() -> None:
        env = sb3compat.make_vec_env(
            "CartPole-v1", 1, monitor_kwargs={"nonsense": 1}, vectorization_mode=mode
        )
        env.reset()
        env.close()

    with pytest.raises(TypeError, match="nonsense"):
        use()


def test_reset_keywords_are_written_and_required(tmp_path: Path) -> None:
    env = EpisodeMonitor(gym.make("CartPole-v1"), str(tmp_path / "x"), reset_keywords=("options",))
    with pytest.raises(ValueError, match=r"missing: \['options'\]"):
        env.reset()
    env.reset(options={"low": -0.01, "high": 0.01})
    done = False
    while not done:
        *_, done, _, info = env.step(0)
    assert info["episode"]["options"] == {"low": -0.01, "high": 0.01}
    env.close()


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_workers_do_not_import_torch(start_method: str) -> None:
    env = sb3compat.make_vec_env(
        "CartPole-v1",
        2,
        wrapper_class=WorkerReport,
        vec_env_cls=vec_env.SubprocVecEnv,
        vec_env_kwargs={"start_method": start_method},
    )
    env.reset()
    if start_method == "spawn":
        assert env.env_method("loaded", "torch") == [False, False]
        assert env.env_method("loaded", "stable_baselines3") == [False, False]
    assert env.env_is_wrapped(WorkerReport) == [True, True]
    env.close()


def test_early_resets_can_be_forbidden() -> None:
    env = sb3compat.make_vec_env(
        scripted, monitor_kwargs={"allow_early_resets": False}, vectorization_mode="async"
    )
    env.reset()
    with pytest.raises(RuntimeError, match="allow_early_resets"):
        env.reset()
    env.close()
