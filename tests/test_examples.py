"""The examples of the documentation: written for Gymnasium, run on SB3's environments."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from tests.interpreter import ROOT, run

pytest.importorskip("stable_baselines3")

EXAMPLES = ROOT / "docs" / "examples"
PICTURES = ["train_cartpole", "three_bridges", "value_of_truncated_states"]


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_every_example_lists_its_options(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package, names in {"skrl": ["skrl_vec_normalize"], "matplotlib": PICTURES}.items():
        if name in names:
            pytest.importorskip(package)
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr("sys.argv", [f"{name}.py", "--help"])
    example = load(name)
    with pytest.raises(SystemExit) as left:
        example.main()
    assert not left.value.code
    assert capsys.readouterr().out.startswith(f"usage: {name}.py [-h]")


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
    done = run(EXAMPLES / "skrl_vec_normalize.py", "--steps", 300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trained for 300 steps of 4 rows" in done.stdout
    assert "1204 observations normalised\nweights changed" in done.stdout


def test_wrong_endings_lower_the_values_that_are_learned() -> None:
    example = load("value_of_truncated_states")
    errors = {
        variant: float(np.mean(example.learned_values(variant, 0, 10_240) - example.true_values()))
        for variant in example.VARIANTS
    }
    assert abs(errors["correct"]) < 0.1
    assert errors["first observation"] < errors["correct"] - 0.1
    assert errors["no flag"] < errors["first observation"] - 0.1


@pytest.mark.parametrize("algorithm", ["PPO", "SAC"])
def test_three_bridges_train_and_compare_values(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    example = load("three_bridges")
    monkeypatch.setattr(example, "HORIZON", 20)
    monkeypatch.setattr(example, "STEPS_IN_EPISODE", 5)
    result = example.run(algorithm, "no flag", 0, timesteps=800)
    # All rows end in their 200th step.
    rows = example.ALGORITHMS[algorithm][1]
    assert [step for step, _ in result["curve"]] == ([800] if rows == 4 else [])
    # The discounted rewards of 20 to 25 steps, each of them from -16.3 to 0; SAC adds its entropy.
    assert -16.3 * 25 < result["true"] < (0 if algorithm == "PPO" else 25)
    # No network begins with such values.
    assert result["learned"] > result["true"] + 20


def test_picture_of_an_episodes_end_is_that_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    script = EXAMPLES / "episode_end.py"
    assert run(script, path).returncode == 0
    kept = ROOT / "docs" / "explanation" / "episode-end.svg"
    assert words(path) == words(kept), f"run: python {script} {kept}"
    assert any("terminal_observation" in text for text in words(kept))


def words(picture: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))


def test_simulator_of_the_gpu_example_keeps_its_contract() -> None:
    from sb3compat.conformance import check_vector_env

    example = load("gpu_simulator")
    ids = ["autoreset_mode_matches_behaviour", "outputs_unchanged_by_later_steps"]
    assert check_vector_env(lambda: example.Points(3), only=ids, max_seconds=20).ok
