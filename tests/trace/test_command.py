"""`sb3compat trace`."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sb3compat.cli import main

SYNC = ["CartPole-v1", "--vectorization-mode", "sync", "--rows", "1", "--episodes", "1"]


def test_trace_prints_every_api_and_writes_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg, html = tmp_path / "trace.svg", tmp_path / "trace.html"
    code = main(["trace", *SYNC, "--svg", str(svg), "--html", str(html)])
    out = capsys.readouterr().out
    assert code == 0
    for api in ("SB3 VecEnv", "Gymnasium NEXT_STEP", "SAME_STEP", "DISABLED"):
        assert api in out
        assert api in html.read_text("utf-8")
    assert svg.read_text("utf-8").startswith("<svg")


def test_files_are_written_although_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    html, read = tmp_path / "trace.html", os.pipe()
    os.close(read[0])
    command = [sys.executable, "-m", "sb3compat", "trace", *SYNC, "--html", str(html)]
    done = subprocess.run(command, stdout=read[1], stderr=subprocess.PIPE, text=True, check=False)
    os.close(read[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert "SAME_STEP" in html.read_text("utf-8")


def test_what_looks_wrong_gives_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    target = "tests.conformance.tiny:NoTerminalObservation"
    assert main(["trace", target, "--episodes", "1"]) == 1
    assert "terminal_observation_iff_done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:make_env"], "there is no 'nowhere'"),
        (["CartPole-v1", "--html", "no/such/folder/page.html"], "a folder that exists"),
        ([*SYNC, "--rows", "9"], "rows to be a number from 1 to 3"),
        ([*SYNC, "--seed", "-1"], "Expected seed to be at least 0, got seed=-1. Pass 0 or more."),
        (["gymnasium:Env"], "Expected a gymnasium.vector.VectorEnv"),
        (["CartPol-v1"], "'CartPol-v1' cannot be made: NameNotFound"),
    ],
)
def test_wrong_use_gives_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


FAILING = """
import gymnasium as gym
from gymnasium.vector import SyncVectorEnv

def unmade():
    raise ValueError("no licence for the simulator")

class Fails(gym.Wrapper):
    def reset(self, **kwargs):
        if self.at == "reset":
            raise ValueError("the simulator hangs")
        return self.env.reset(**kwargs)

    def step(self, action):
        raise ValueError("the simulator hangs")

def fails(at):
    env = Fails(gym.make("CartPole-v1"))
    env.at = at
    return SyncVectorEnv([lambda: env])

def at_reset():
    return fails("reset")

def at_step():
    return fails("step")
"""


@pytest.mark.parametrize(
    ("name", "raised", "line"),
    [
        ("failing_envs.py:unmade", "no licence for the simulator", "made"),
        ("failing_envs.py:at_reset", "the simulator hangs", "traced"),
        ("failing_envs.py:at_step", "the simulator hangs", "traced"),
        ("failing_module.py:make_env", "the module has a mistake", "made"),
    ],
)
def test_exceptions_of_the_target_are_told_with_their_traceback_and_exit_code_2(
    name: str,
    raised: str,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "failing_envs", raising=False)
    Path("failing_envs.py").write_text(FAILING)
    Path("failing_module.py").write_text('raise ValueError("the module has a mistake")')
    # In a new thread, no exception of an earlier test can be the context of this one.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(main, ["trace", name]).result() == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "sb3compat" not in lines[1]
    assert lines[-2:] == [
        f"ValueError: {raised}",
        f"sb3compat: {name} cannot be {line}, see above.",
    ]


# Up to Gymnasium 1.2, an environment is closed when it is collected, even if it was not made.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_environment_of_an_id_that_fails_is_told_with_a_hint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["trace", "CartPole-v1", '--env-kwargs={"foo": 1}']) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):")
    assert said.endswith("see above. Does it take the arguments of --env-kwargs?\n")
