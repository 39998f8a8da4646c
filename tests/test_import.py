"""What is imported when; each in a fresh interpreter."""

from __future__ import annotations

from pathlib import Path

from tests.interpreter import LOADED, hidden, needs_sb3, python


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
