"""The RL Zoo on our environments: the same weights and statistics, and the page's own commands."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import sb3compat
from tests.real.environments import same_results, vec_envs

pytest.importorskip("rl_zoo3", reason="needs rl_zoo3")

from rl_zoo3.exp_manager import ExperimentManager

PARAMETERS: dict[str, Any] = {
    "n_envs": 3,
    "policy": "MlpPolicy",
    "n_timesteps": 400,
    "n_steps": 32,
    "batch_size": 32,
}
VEC_ENVS: dict[str, Callable[..., Any]] = {
    "DummyVecEnv": vec_envs.DummyVecEnv,
    "SyncVectorEnv": lambda fns: sb3compat.to_sb3(gym.vector.SyncVectorEnv(fns)),
    "AsyncVectorEnv": lambda fns: sb3compat.to_sb3(
        gym.vector.AsyncVectorEnv(fns, shared_memory=False)
    ),
    "ParallelVecEnv": partial(sb3compat.ParallelVecEnv, workers=2),
}


@pytest.mark.parametrize(
    "extra", [{}, {"normalize": True}, {"frame_stack": 2}], ids=["plain", "normalize", "stack"]
)
def test_experiment_is_the_same(
    extra: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {}

    class Experiment:
        """An experiment in place of an environment."""

        def __init__(self, name: str) -> None:
            # As docs/how-to/use-the-rl-zoo.md says.
            cls = staticmethod(VEC_ENVS[name])
            monkeypatch.setattr(ExperimentManager, "default_vec_env_cls", cls)
            self.manager = ExperimentManager(
                argparse.Namespace(),
                "ppo",
                "CartPole-v1",
                str(tmp_path / name),
                n_timesteps=400,
                eval_freq=150,
                n_eval_episodes=3,
                hyperparams={**PARAMETERS, **extra},
                config=write_config(tmp_path),
                seed=3,
                log_interval=1,
                verbose=0,
                device="cpu",
            )

        def close(self) -> None:
            """The manager has closed its environments."""

    def train(experiment: Experiment) -> Any:
        model, _ = experiment.manager.setup_experiment()
        made[type(model.get_env().unwrapped).__name__] = True
        experiment.manager.learn(model)
        statistics = [{k: e[k] for k in "rl"} for e in model.ep_info_buffer]
        return {"policy": model.policy, "episodes": statistics}

    makes = {name: lambda name=name: Experiment(name) for name in VEC_ENVS}  # type: ignore[misc]
    result = same_results(makes, train)
    assert len(result["episodes"]) > 5
    assert made.keys() == {"DummyVecEnv", "VecEnvAdapter", "ParallelVecEnv"}


def test_the_commands_of_the_page_train_an_agent_and_run_it(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/use-the-rl-zoo.md").read_text("utf-8")
    [script] = re.findall(r"Save this as `zoo.py`:\n\n```text\n(.*?)```", page, re.DOTALL)
    (tmp_path / "zoo.py").write_text(script)
    train, enjoy = re.findall(r"^\$ python (zoo\.py .*|-m rl_zoo3\.enjoy .*)$", page, re.MULTILINE)
    run(train, tmp_path)
    assert re.search(r"Episode Reward: \d", run(f"{enjoy} --no-render -n 300", tmp_path))


def run(command: str, folder: Path) -> str:
    """What a command prints, if it works."""
    words = [sys.executable, *command.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_config(folder: Path) -> str:
    path = folder / "ppo.yml"
    lines = [f"  {key}: {value!r}\n" for key, value in PARAMETERS.items()]
    path.write_text("CartPole-v1:\n" + "".join(lines))
    return str(path)
