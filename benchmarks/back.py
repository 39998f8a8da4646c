"""Cases for `run.py`: what the way back costs, from a `VecEnv` to a `VectorEnv`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

import sb3compat

Work = Callable[[], object]
Case = tuple[str, int, Work, str, Work]

MODES = (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP)


def stepping(env: Any) -> Work:
    """Steps of a `VecEnv` or a `VectorEnv`, with random actions."""
    actions = np.random.default_rng(0).integers(2, size=(256, env.num_envs))
    env.reset()
    turn = iter(range(1 << 60))
    return lambda: env.step(actions[next(turn) % 256])


def back_cases(make_slow: Callable[[], gym.Env[Any, Any]]) -> Iterator[Case]:
    """CartPole in this process, and `make_slow` in workers."""
    n = 8
    fns = [partial(gym.make, "CartPole-v1")] * n
    for mode in MODES:
        name = f"back, {mode.value}, Dummy"
        ours = stepping(sb3compat.to_gymnasium(DummyVecEnv(fns), autoreset_mode=mode))
        yield name, n, ours, "DummyVecEnv", stepping(DummyVecEnv(fns))
        sync = SyncVectorEnv(fns, autoreset_mode=mode)
        yield name, n, ours, f"SyncVectorEnv, {mode.value}", stepping(sync)
    wrapped = sb3compat.to_gymnasium(VecMonitor(DummyVecEnv(fns)))
    other = stepping(VecMonitor(DummyVecEnv(fns)))
    yield "back, VecMonitor", n, stepping(wrapped), "VecMonitor(DummyVecEnv)", other
    for mode in MODES:
        envs = sb3compat.to_gymnasium(SubprocVecEnv([make_slow] * n), autoreset_mode=mode)
        parallel = AsyncVectorEnv([make_slow] * n, context="forkserver", autoreset_mode=mode)
        name, other_name = f"back, {mode.value}, Subproc", f"AsyncVectorEnv, {mode.value}"
        yield name, n, stepping(envs), other_name, stepping(parallel)
        plain = SubprocVecEnv([make_slow] * n)
        yield name, n, stepping(envs), "SubprocVecEnv", stepping(plain)
        for env in (envs, parallel, plain):
            env.close()
