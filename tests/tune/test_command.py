"""`sb3compat tune`, on real environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gymnasium.vector import VectorEnv

from sb3compat._tune.command import advised, pays_from
from sb3compat._tune.turns import Rate
from sb3compat._tune.ways import Way, numbers_of_workers
from sb3compat._upstream.sb3 import HAS_SB3
from sb3compat.cli import main

ENVS = """
import gymnasium as gym

def make_env():
    return gym.make("MountainCar-v0")

def fails():
    raise OSError("no simulator")

def many():
    return gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
"""


def told(capsys: pytest.CaptureFixture[str], env_id: str, n_envs: int) -> dict[str, Any]:
    assert main(["tune", env_id, f"--num-envs={n_envs}", "--seconds", "0.1", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_each_line_makes_the_environment_that_was_timed(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "CartPole-v1", 2)
    names = [way["name"] for way in found["ways"]]
    assert names[: 4 if HAS_SB3 else 3] == ["DummyVecEnv"] * HAS_SB3 + ["sync", "native", "async"]
    assert f"parallel, workers={min(2, found['cores'])}" in names
    assert f"parallel, workers={max(1, found['cores'] - 1)}, parent_steps" in names
    assert found["use"]["name"] in names
    for way in found["ways"]:
        assert 0 < way["slowest"] <= way["steps_per_second"] <= way["fastest"]
        env = pasted(way)
        assert (env.num_envs, len(env.reset())) == (2, 2)
        env.close()


def pasted(way: dict[str, Any]) -> Any:
    """What the lines make that a user copies."""
    namespace: dict[str, Any] = {}
    exec("\n".join([*way["imports"], f"env = {way['line']}"]), namespace)
    return namespace["env"]


def test_functions_are_timed_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned_envs.py").write_text(ENVS)
    file = str(tmp_path / "tuned_envs.py")
    found = told(capsys, f"{file}:make_env", 1)
    assert "native" not in [way["name"] for way in found["ways"]]
    assert "make_vec_env(make_env, n_envs=1" in found["use"]["line"]
    assert "from tuned_envs import make_env" in found["use"]["imports"]
    pasted(found["use"]).close()
    assert main(["tune", f"{file}:fails", "--num-envs", "1"]) == 2
    said = capsys.readouterr().err  # once, as the reason is the same for all
    assert said == "sb3compat: fails cannot be made: OSError: no simulator\n"
    assert main(["tune", f"{file}:nothing"]) == 2
    assert "Expected" in capsys.readouterr().err
    assert main(["tune", f"{file}:many", "--num-envs", "1"]) == 2
    assert "to make a single environment, got a SyncVectorEnv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("env_id", "text"),
    [
        ("CartPol-v1", "sb3compat: 'CartPol-v1' cannot be made: NameNotFound: "),
        ("Nosuch-v0", "module that registers it: my_module:Nosuch-v0"),
        ("make_env_of_mine", "write my_module:make_env or path/"),
    ],
)
def test_unknown_id_is_told_once_with_a_way_out(
    env_id: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", env_id, "--num-envs", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line


def test_ways_that_are_impossible_are_named_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # There is no single environment of that id.
    env_id = "tests.registered:NativeOnly-v0"
    assert main(["tune", env_id, "--n-envs", "1", "--seconds", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "sync" in out
    assert "cannot be made: " in out
    assert "\nA native environment draws other" in out
    _, lines = out.split("\nUse:\n\n")
    namespace: dict[str, Any] = {}
    exec(lines, namespace)
    namespace["env"].close()


def way(name: str) -> Way:
    return Way(name, name, VectorEnv)


def test_the_simplest_of_nearly_equal_ways_is_advised() -> None:
    ways = [way("sync"), way("async"), way("native")]
    found = {
        name: Rate(steps, 0, 0) for name, steps in (("sync", 94), ("async", 96), ("native", 100))
    }
    assert advised(ways, found).name == "async"
    del found["async"]
    assert advised(ways, found).name == "native"


@pytest.mark.parametrize(
    ("cores", "envs", "expected"),
    [(1, 8, [1]), (2, 8, [1, 2]), (6, 9, [1, 2, 4, 6]), (8, 3, [1, 2, 3])],
)
def test_numbers_of_workers(cores: int, envs: int, expected: list[int]) -> None:
    assert numbers_of_workers(cores, envs) == expected


def test_the_cost_from_which_on_workers_pay() -> None:
    # 10 rows of 100 us in two workers, and an exchange of 50 us: 550 us a step.
    found = {"parallel, workers=1": Rate(1, 0, 0), "parallel, workers=2": Rate(10 / 550e-6, 0, 0)}
    found["parallel, workers=1, parent_steps"] = Rate(1, 0, 0)
    cost = pays_from(found, 100.0, 10)
    # Without workers 10 * 10 us; with them 5 * 10 us, and 50 us.
    assert cost == pytest.approx(10.0)
    assert pays_from({"parallel, workers=1": Rate(1, 0, 0)}, 100.0, 10) is None
