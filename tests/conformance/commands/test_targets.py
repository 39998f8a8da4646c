"""What a target raises is shown with its own traceback, and exit code 2, by every command."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sb3compat import cli
from tests.interpreter import REPOSITORY

ENVS = """
import gymnasium as gym
from gymnasium.vector import SyncVectorEnv

class Fails(gym.Wrapper):
    at = "step"

    def reset(self, **kwargs):
        if self.at == "reset":
            raise ValueError("the simulator hangs")
        return self.env.reset(**kwargs)

    def step(self, action):
        raise ValueError("the simulator hangs")

def unmade():
    raise ValueError("no licence for the simulator")

def single():
    return Fails(gym.make("CartPole-v1"))

def at_step():
    return SyncVectorEnv([single])

def at_reset():
    envs = at_step()
    envs.envs[0].at = "reset"
    return envs
"""
UNMADE = ("failing_envs.py:unmade", "ValueError: no licence for the simulator")
HANGS = "ValueError: the simulator hangs"
MODULE = ("failing_module.py:make_env", "ModuleNotFoundError: No module named 'no_such_simulator'")
TUNE = ("--n-envs=1", "--seconds=0.1")
NO_GUARD = """
import gymnasium as gym
import sb3compat

def make_env():
    return gym.make("CartPole-v1")

sb3compat.ParallelVecEnv([make_env] * 2, workers=1).close()
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("failing_envs", "failing_module"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("failing_envs.py").write_text(ENVS)
    Path("failing_module.py").write_text("import no_such_simulator\n")
    Path("script.py").write_text("pass")


@pytest.mark.parametrize(
    ("command", "target", "raised", "said", "more"),
    [
        ("check", *UNMADE, "failing_envs.py:unmade cannot be made", ()),
        ("check", *UNMADE, "failing_envs.py:unmade cannot be made", ("--no-isolate",)),
        ("check", *MODULE, "failing_module.py:make_env cannot be made", ()),
        ("check", "CartPole-v1", MODULE[1], "made", ("--reference=failing_module:x",)),
        ("trace", *UNMADE, "failing_envs.py:unmade cannot be made", ()),
        ("trace", *MODULE, "failing_module.py:make_env cannot be made", ()),
        ("trace", "failing_envs.py:at_reset", HANGS, "at_reset cannot be traced", ()),
        ("trace", "failing_envs.py:at_step", HANGS, "at_step cannot be traced", ()),
        ("tune", *MODULE, "failing_module.py:make_env cannot be made", TUNE),
        ("tune", "failing_envs.py:single", HANGS, "single cannot be timed", TUNE),
        ("replay", "script.py", MODULE[1], "cannot be imported", ("--target", MODULE[0])),
    ],
)
def test_traceback_has_no_line_of_this_package(
    command: str,
    target: str,
    raised: str,
    said: str,
    more: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    # In a new thread, no exception of an earlier test can be the context of this one.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(cli.main, [command, target, *more]).result() == 2
    err = capsys.readouterr().err
    lines = err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "sb3compat/" not in err.replace(str(REPOSITORY), "") or command == "tune"
    assert raised in lines
    assert lines[-1].startswith("sb3compat: ")
    assert f"{said}, see above." in lines[-1]


@pytest.mark.parametrize("command", ["check", "tune"])
def test_a_script_that_starts_workers_without_a_guard_is_told_in_one_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "no_guard", raising=False)
    Path("no_guard.py").write_text(NO_GUARD)
    assert cli.main([command, "no_guard.py:make_env"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sb3compat: no_guard.py:make_env cannot be made: Expected ")
    assert """below 'if __name__ == "__main__":'""" in line


# Up to Gymnasium 1.2, an environment is closed when it is collected, even if it was not made.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("command", [["check", "-q"], ["trace"]])
def test_an_environment_of_an_id_that_fails_is_told_with_a_hint(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, "CartPole-v1", '--env-kwargs={"foo": 1}']) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last):")
    assert said.endswith("see above. Does it take the arguments of --env-kwargs?\n")
