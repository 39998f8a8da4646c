"""What is imported when, and life without Stable-Baselines3; each in a fresh interpreter."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sb3compat

# The package that this process tests, wherever it was imported from.
ROOT = Path(sb3compat.__file__).parents[1]
HEAVY = ["stable_baselines3", "torch", "jax", "ray", "hypothesis", "pytest", "envpool", "ale_py"]

HAS_SB3 = find_spec("stable_baselines3") is not None
needs_sb3 = pytest.mark.skipif(not HAS_SB3, reason="needs stable-baselines3")


def python(tmp_path: Path, script: str, *args: str) -> str:
    """Run a script in a fresh interpreter, and return what it printed."""
    path = tmp_path / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, str(path), *args],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = f"""
import sys

def loaded():
    return [name for name in {HEAVY} if name in sys.modules]
"""


def test_import_loads_no_heavy_library(tmp_path: Path) -> None:
    script = """
import sb3compat
assert {"to_sb3", "to_gymnasium"} <= set(dir(sb3compat))
assert sb3compat.__version__
print(loaded())
from sb3compat import ConversionError, register_partial_reset, reset_with_mask
print(loaded())
"""
    assert python(tmp_path, LOADED + script).splitlines() == ["[]", "[]"]


BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class NotInstalled(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)

sys.meta_path.insert(0, NotInstalled())
"""

HANDWRITTEN = """
import gymnasium as gym
import numpy as np
import sb3compat


class Counting:
    num_envs = 2
    observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self):
        self.time = 0
        return np.zeros((2, 1), np.float32)

    def step(self, actions):
        self.time += 1
        obs, dones = np.full((2, 1), self.time, np.float32), np.array([self.time == 2, False])
        infos = [{"time": self.time}, {"half": self.time / 2}]
        if dones[0]:
            infos[0] |= {"TimeLimit.truncated": True, "terminal_observation": obs[0].copy()}
            obs[0] = 0
        return obs, np.ones(2), dones, infos


for mode in ("SameStep", "Disabled"):
    envs = sb3compat.to_gymnasium(Counting(), autoreset_mode=mode)
    envs.reset()
    envs.step([0, 1])
    obs, rewards, terminations, truncations, infos = envs.step([0, 1])
    assert obs.tolist() == ([[0], [2]] if mode == "SameStep" else [[2], [2]])
    assert (rewards.dtype, rewards.tolist()) == (np.float64, [1, 1])
    assert (terminations.tolist(), truncations.tolist()) == ([False, False], [True, False])
    assert infos["half"].tolist() == [0, 1]
    envs.close()
print(loaded())
"""


def test_handwritten_vec_env_needs_no_sb3(tmp_path: Path) -> None:
    for missing in ("stable_baselines3", "nothing"):
        assert python(tmp_path, BLOCK + LOADED + HANDWRITTEN, missing) == "[]\n"


def test_adapters_compose_without_sb3(tmp_path: Path) -> None:
    script = """
import gymnasium as gym, numpy as np, sb3compat
for mode in gym.vector.AutoresetMode:
    env = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2, autoreset_mode=mode)
    vec_env = sb3compat.to_sb3(env)
    assert sb3compat.to_gymnasium(vec_env, autoreset_mode=mode) is env
    ours = sb3compat.to_gymnasium(vec_env, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    ours.reset(seed=3)
    for _ in range(60):
        ours.step(np.array([0, 1]))
    if ours is not env:
        assert sb3compat.to_sb3(ours) is vec_env
print("done")
"""
    assert python(tmp_path, BLOCK + script, "stable_baselines3") == "done\n"


def test_adapting_imports_sb3_and_no_environment_library(tmp_path: Path) -> None:
    script = """
import gymnasium as gym, sb3compat
env = sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=2))
env.reset()
env.step([0, 1])
print(set(loaded()) - {"stable_baselines3", "torch"} or "no more")
"""
    assert python(tmp_path, LOADED + script) == "no more\n"


ON_RAY = """
import sb3compat

sb3compat.ParallelVecEnv([Known] * 2, workers=2).close()
print("ray" in loaded())
try:
    sb3compat.ParallelVecEnv([Known] * 2, backend="ray")
except ImportError as error:
    print(error)
"""


def test_missing_ray_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    script = "from functools import partial\nimport gymnasium as gym\n"
    script += "Known = partial(gym.make, 'CartPole-v1')\n"
    loaded, error = python(tmp_path, BLOCK + LOADED + script + ON_RAY, "ray").splitlines()
    assert loaded == "False"
    assert 'pip install "sb3compat[ray]"' in error


def test_public_names_can_be_imported(tmp_path: Path) -> None:
    script = """
import sb3compat
before = set(vars(sb3compat))
for name in sb3compat.__all__:
    assert getattr(sb3compat, name) is getattr(sb3compat, name), name
namespace = {}
exec("from sb3compat import *", namespace)
assert set(sb3compat.__all__) <= set(namespace), set(sb3compat.__all__) - set(namespace)
assert set(sb3compat.__all__) <= set(dir(sb3compat))
for name in sb3compat.__all__:
    if not name.startswith("__"):
        assert namespace[name].__name__ == name
        assert namespace[name].__module__.startswith("sb3compat."), name
try:
    sb3compat.to_sb4
except AttributeError as error:
    print(error)
"""
    assert python(tmp_path, script) == "module 'sb3compat' has no attribute 'to_sb4'\n"


WORKER = """
from multiprocessing import get_context

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv


class Telling(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    mu = 0

    def loaded(self):
        return loaded()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {"loaded": loaded()}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, False, {"loaded": loaded()}


def make():
    return gym.wrappers.TimeLimit(Telling(), 2)


def check(infos):
    assert [info["loaded"] for info in infos] == [[], []], infos


def main(context):
    import sb3compat

    def made():
        return sb3compat.to_sb3(AsyncVectorEnv([make] * 2, context=context))

    drive(made())
    try:
        from stable_baselines3.common.vec_env import VecMonitor
    except ImportError:
        return
    # It asks whether the sub-environments are wrapped in SB3's own Monitor.
    drive(VecMonitor(made()))


def drive(env):
    env.seed(1)
    env.set_options([{"a": 1}, {}])
    env.reset()
    check(env.unwrapped.reset_infos)
    for _ in range(3):
        _, _, dones, infos = env.step([0, 1])
        check(infos)
    assert env.env_is_wrapped(gym.wrappers.TimeLimit) == [True, True]
    assert env.env_is_wrapped(gym.wrappers.ClipAction) == [False, False]
    env.set_attr("mu", 3)
    assert env.get_attr("mu") == [3, 3]
    assert env.has_attr("mu") and not env.has_attr("nu")
    env.reset()
    check(env.step([0, 1])[3])
    print(type(env).__name__, env.env_method("loaded"), "torch" in loaded())
    env.close()


if __name__ == "__main__":
    for context in sys.argv[1:]:
        main(context)
"""

# A forked worker shares what its parent has imported.
CONTEXTS = sorted({"spawn", "forkserver"} & set(multiprocessing.get_all_start_methods()))


def test_workers_never_import_torch(tmp_path: Path) -> None:
    expected = [f"VecEnvAdapter [[], []] {HAS_SB3}"]
    expected += ["VecMonitor [[], []] True"] if HAS_SB3 else []
    said = python(tmp_path, LOADED + WORKER, *CONTEXTS).splitlines()
    assert said == expected * len(CONTEXTS)


# Prints everything that the adapter answers. Anything that JSON lacks becomes a string.
PROGRAM = """
import json
import warnings

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat


class Painted(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def __init__(self, row, render_mode="rgb_array"):
        self.row, self.render_mode = row, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.np_random.random(2, np.float32), {"seed": seed, "options": options}

    def step(self, action):
        self.time += 1
        obs = self.np_random.random(2, np.float32)
        truncated = self.time >= self.row + 2
        return obs, self.time / 3, self.time >= 4, truncated, {"action": int(action)}

    def render(self):
        return np.full((2, 3, 3), 10 * self.row + 1, np.uint8)

    def double(self, number):
        return 2 * number + self.row


def told(value):
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    return repr(value)


said = []


def say(*values):
    said.append(json.loads(json.dumps(values, default=told)))


def drive(vector_env):
    env = sb3compat.to_sb3(vector_env)
    say("made", env.num_envs, env.observation_space, env.action_space, env.render_mode)
    say(env.metadata, env.reset_infos, env.unwrapped is env)
    say(sb3compat.to_sb3(env) is env)
    for seed, options in [
        (3, None), (None, {"a": 1}), (5, [{"a": 1}, {}, {"b": [2]}]), (None, []), (7, {})
    ]:
        if seed is not None:
            say("seed", env.seed(seed))
        if options is not None:
            try:
                env.set_options(options)
            except Exception as error:
                say(type(error).__name__, str(error))
        say("reset", env.reset(), env.reset_infos)
        for time in range(6):
            env.step_async(np.array([time % 3, 0, 1]))
            say("step", *env.step_wait(), env.reset_infos)
        say("step", *env.step([2, 1, 0]))
    np.random.seed(0)
    say(env.seed(), env.reset(), env.reset_infos)
    say(env.get_attr("row"), env.get_attr("row", [2, 0]), env.has_attr("row"), env.has_attr("no"))
    say(env.env_method("double", 4), env.env_method("double", number=5, indices=1))
    env.set_attr("row", 8, indices=0)
    say(env.get_attr("row"), env.env_is_wrapped(gym.wrappers.TimeLimit))
    say(env.getattr_depth_check("num_envs", False), env.getattr_depth_check("num_envs", True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        say("images", list(env.get_images()), env.render(), env.render("rgb_array"))
        say("warned", {warning.category.__name__ for warning in caught})
    env.close()
    env.close()


def main():
    rows = [lambda row=row: Painted(row) for row in range(3)]
    for mode in AutoresetMode:
        for build in (SyncVectorEnv, AsyncVectorEnv):
            drive(build(rows, autoreset_mode=mode))
    drive(SyncVectorEnv([lambda row=row: Painted(row, None) for row in range(3)]))
    bases = [cls.__module__.partition(".")[0] for cls in sb3compat.VecEnvAdapter.__mro__]
    print(json.dumps([said, bases, "torch" in sys.modules]))


if __name__ == "__main__":
    main()
"""

Answer = tuple[list[Any], list[str], bool]


@pytest.fixture(scope="module")
def without_sb3(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """The answers of the adapter where SB3 is not installed."""
    out = python(tmp_path_factory.mktemp("no_sb3"), BLOCK + PROGRAM, "stable_baselines3")
    said, bases, torch = json.loads(out)
    return said, bases, torch


def answers(said: list[Any], label: str) -> list[Any]:
    return [answer[1:] for answer in said if answer[0] == label]


def painted(value: int) -> list[list[list[int]]]:
    return [[[value] * 3] * 3] * 2


def test_adapter_works_without_sb3(without_sb3: Answer) -> None:
    said, bases, torch = without_sb3
    assert "stable_baselines3" not in bases
    assert not torch
    assert answers(said, "made")[0][:2] == [3, "Box(-1.0, 1.0, (2,), float32)"]
    assert answers(said, "seed")[0] == [[3, 4, 5]]
    infos = answers(said, "reset")[0][1]
    assert [info["seed"] for info in infos] == [3, 4, 5]
    assert [info["options"] for info in answers(said, "reset")[2][1]] == [
        {"a": 1},
        None,
        {"b": [2]},
    ]
    # Row 0 ends with its second step, by the limit; row 2 with its fourth, in both ways.
    _, rewards, dones, infos, reset_infos = answers(said, "step")[1]
    assert rewards == ["float32", [np.float32(2 / 3)] * 3]
    assert dones == ["bool", [True, False, False]]
    assert [info["TimeLimit.truncated"] for info in infos] == [True, False, False]
    assert [len(info) for info in infos] == [3, 2, 2]
    assert reset_infos[0] == {"seed": None, "options": None}
    assert answers(said, "step")[3][3][2]["TimeLimit.truncated"] is False

    for images, tiled, again in answers(said, "images")[:6]:
        # Row 0 was told to be row 8.
        assert [image[1] for image in images] == [painted(81), painted(11), painted(21)]
        assert tiled == again
        assert tiled[0] == "uint8"
        assert tiled[1] == [
            *[left + right for left, right in zip(painted(81), painted(11), strict=True)],
            *[left + right for left, right in zip(painted(21), painted(0), strict=True)],
        ]
    assert answers(said, "images")[6][1:] == [None, None]
    assert answers(said, "warned") == [["set()"]] * 6 + [["{'UserWarning'}"]]


@needs_sb3
def test_answers_are_the_same_with_and_without_sb3(without_sb3: Answer, tmp_path: Path) -> None:
    said, bases, torch = json.loads(python(tmp_path, BLOCK + PROGRAM, "nothing"))
    assert "stable_baselines3" in bases
    assert torch
    assert len(without_sb3[0]) == len(said)
    for number, (ours, reference) in enumerate(zip(without_sb3[0], said, strict=True)):
        assert ours == reference, f"answer {number}"


@needs_sb3
def test_broken_sb3_is_an_error_and_not_taken_as_missing(tmp_path: Path) -> None:
    script = """
import sb3compat
try:
    sb3compat.to_sb3
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert python(tmp_path, BLOCK + script, "torch") == "torch\n"
