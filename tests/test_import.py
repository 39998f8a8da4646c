"""What is imported when, and life without Stable-Baselines3; each in a fresh interpreter."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.interpreter import HAS_SB3, LOADED, hidden, needs_sb3, python


def test_import_and_public_names_load_no_heavy_library_and_adapting_only_sb3(
    tmp_path: Path,
) -> None:
    script = """
import sb3compat
assert {"to_sb3", "to_gymnasium"} <= set(dir(sb3compat))
assert sb3compat.__version__
from sb3compat import ConversionError, register_partial_reset, reset_with_mask
print(loaded())

import gymnasium as gym
env = sb3compat.to_sb3(gym.make_vec("CartPole-v1", num_envs=2))
env.reset()
env.step([0, 1])
print(set(loaded()) - {"stable_baselines3", "torch"} or "no more")

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
for name in ("to_sb4", "check_vec_env"):
    try:
        getattr(sb3compat, name)
    except AttributeError as error:
        print(error)
"""
    assert python(tmp_path, LOADED + script).splitlines() == [
        "[]",
        "no more",
        "module 'sb3compat' has no attribute 'to_sb4'",
        "module 'sb3compat' has no attribute 'check_vec_env'; it is in sb3compat.conformance",
    ]


ON_RAY = """
import sb3compat

sb3compat.ParallelVecEnv([Known] * 2, workers=1).close()
print("ray" in loaded())
try:
    sb3compat.ParallelVecEnv([Known] * 2, backend="ray")
except ImportError as error:
    print(error)
"""


def test_missing_ray_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    script = "from functools import partial\nimport gymnasium as gym\n"
    script += "Known = partial(gym.make, 'CartPole-v1')\n"
    loaded, error = python(tmp_path, hidden("ray") + LOADED + script + ON_RAY).splitlines()
    assert loaded == "False"
    assert 'pip install "sb3compat[ray]"' in error


@needs_sb3
def test_broken_sb3_is_an_error_and_not_taken_as_missing(tmp_path: Path) -> None:
    script = """
import sb3compat
try:
    sb3compat.to_sb3
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert python(tmp_path, hidden("torch") + script) == "torch\n"


HANDWRITTEN = """
import sb3compat
from tests.handwritten import CountingVecEnv

for mode in ("SameStep", "Disabled"):
    envs = sb3compat.to_gymnasium(CountingVecEnv(), autoreset_mode=mode)
    envs.reset()
    envs.step([0, 1])
    obs, _, _, truncations, _ = envs.step([0, 1])
    assert obs.tolist() == ([[0], [2]] if mode == "SameStep" else [[2], [2]])
    assert truncations.tolist() == [True, False]
    envs.close()
print(loaded())
"""


def test_handwritten_vec_env_needs_no_sb3(tmp_path: Path) -> None:
    for missing in ("stable_baselines3", "nothing"):
        assert python(tmp_path, hidden(missing) + LOADED + HANDWRITTEN) == "[]\n"


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
try:
    sb3compat._upstream.sb3.patched_env(object())
except ImportError as error:
    print(error)
"""
    refused = python(tmp_path, hidden("stable_baselines3") + script)
    assert re.search(r"of the old gym.*sb3compat\[sb3\].*shimmy", refused)


PROGRAM = """
import json
import warnings

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import ScriptedEnv, fns, script


class Unseen(ScriptedEnv):
    def __init__(self, row, render_mode):
        super().__init__(script(), row)
        self.render_mode = render_mode


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
        (3, None), (None, {"x": 1}), (5, [{"x": 1}, {}, {"x": 2}]), (None, []), (7, {})
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
    say(env.env_method("set_mu", 4), env.env_method("set_mu", mu=5, indices=1))
    env.set_attr("row", 8, indices=0)
    say(env.get_attr("row"), env.env_is_wrapped(gym.wrappers.TimeLimit))
    say([env.getattr_depth_check(*asked) for asked in (("env", 0), ("env", 1), ("no", 1))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        say("images", list(env.get_images()), env.render(), env.render("rgb_array"))
        say("warned", {warning.category.__name__ for warning in caught})
    env.close()
    env.close()


def main():
    for mode in AutoresetMode:
        for build in (SyncVectorEnv, AsyncVectorEnv):
            rows = fns(3, lengths=(2, 3, 4), endings=("terminated", "truncated", "both"))
            drive(build(rows, autoreset_mode=mode))
    for mode in (None, "human"):
        drive(SyncVectorEnv([lambda row=row: Unseen(row, mode) for row in range(3)]))
    for n in (1, 2, 4, 5):
        say("tiled", sb3compat.to_sb3(SyncVectorEnv(fns(n))).render())
    bases = [cls.__module__.partition(".")[0] for cls in sb3compat.VecEnvAdapter.__mro__]
    print(json.dumps([said, bases, "torch" in sys.modules]))


if __name__ == "__main__":
    main()
"""


def test_adapter_answers_the_same_with_and_without_sb3(tmp_path: Path) -> None:
    said, bases, torch = json.loads(python(tmp_path, hidden("stable_baselines3") + PROGRAM))
    assert "stable_baselines3" not in bases
    assert not torch
    # What a mistake of both would change alike: seeds and options reach their rows.
    resets = [answer[2] for answer in said if answer[0] == "reset"]
    assert [info["seed"] for info in resets[0]] == [3, 4, 5]
    assert [info.get("option") for info in resets[2]] == [1, None, 2]
    if not HAS_SB3:
        return
    reference, bases, torch = json.loads(python(tmp_path, hidden("nothing") + PROGRAM))
    assert "stable_baselines3" in bases
    assert torch
    assert len(said) == len(reference)
    for number, (ours, theirs) in enumerate(zip(said, reference, strict=True)):
        assert ours == theirs, f"answer {number}"
