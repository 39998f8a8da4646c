"""Environments that are registered once this module is imported, as `"tests.registered:id"`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec
from gymnasium.vector import AutoresetMode

from tests.envs import MakeEnv, Script, ScriptedEnv, fns, script
from tests.native import NativeEnv

SCRIPT = script(lengths=(2, 3, 7), endings=("truncated", "both", "terminated"), infos="wild")
REUSING = script(lengths=(2, 3), endings=("truncated", "both"), infos="wild", reuse=True)


def scripted(row: int = 0, chosen: Script = SCRIPT) -> ScriptedEnv:
    return ScriptedEnv(chosen, row)


def reusing(row: int = 0) -> gym.Env[Any, Any]:
    return MakeEnv(REUSING, row)()


def copying(row: int = 0) -> gym.Env[Any, Any]:
    """What `reusing` makes, as `DummyVecEnv` needs it: each array and dict its own."""
    return MakeEnv(REUSING, row, copying=True)()


def native(num_envs: int, max_episode_steps: int | None = None, **kwargs: Any) -> NativeEnv:
    return NativeEnv(fns(num_envs), kwargs.get("mode", AutoresetMode.SAME_STEP))


gym.register("Scripted-v1", scripted)
gym.register("Scripted-v3", scripted, max_episode_steps=4, kwargs={"row": 1})
gym.register(
    "Wrapped-v0",
    scripted,
    vector_entry_point=native,
    additional_wrappers=(
        WrapperSpec("TimeLimit", "gymnasium.wrappers:TimeLimit", {"max_episode_steps": 2}),
    ),
)
gym.register("NativeOnly-v0", vector_entry_point=native)
gym.register("Undeclared-v0", lambda **_: scripted(), vector_entry_point=native)
