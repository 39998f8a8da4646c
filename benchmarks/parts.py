"""Where the time goes: what `make bench ARGS=--parts` prints.

The timers take some tenths of a microsecond themselves, so small parts look a little larger than
they are. The numbers of one table are from one run.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from cases import learning, make_async, make_cartpole, make_model, make_native, stepping
from envs import ImageEnv
from measure import Work
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

import sb3compat
from sb3compat._to_sb3 import modes

REST = "the rest"
# An owner, the name of its function, and what to call it.
Timed = tuple[Any, str, str]


def self_times(work: Work, repeat: int, functions: list[Timed]) -> dict[str, float]:
    """The seconds per call in each function, without those it spends in other timed ones."""
    spent: defaultdict[str, float] = defaultdict(float)
    inner = [0.0]

    def timed(function: Any, label: str) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = time.perf_counter() - start
                spent[label] += seconds - inner.pop()
                inner[-1] += seconds

        return run

    with ExitStack() as stack:
        for owner, name, label in functions:
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name), label)))
        whole = timed(work, REST)
        for _ in range(max(3, repeat // 10)):
            whole()
        spent.clear()
        for _ in range(repeat):
            whole()
    largest_first = sorted(spent.items(), key=lambda part: -part[1])
    return {label: seconds / repeat for label, seconds in largest_first}


def table(title: str, parts: dict[str, float], unit: float, name: str) -> None:
    total = sum(parts.values())
    print(f"\n| {title} | {name} | share |\n|---|--:|--:|")
    for label, seconds in [*parts.items(), ("together", total)]:
        print(f"| {label} | {seconds / unit:,.1f} | {seconds / total:.0%} |")


def native() -> None:
    for n in (64, 1024, 4096):
        env: Any = sb3compat.to_sb3(make_native(num_envs=n))
        source = env._source
        functions = [
            (env.env, "step", "the environment's own step"),
            (modes, "split_step_infos", "the infos of the step"),
            (env._observations, "rows", "the terminal observations"),
            (source, "_reset_rows", "the reset of the ended rows"),
            (source, "_assign", "the first observations written"),
            (modes, "split_infos", "the infos of the reset"),
            (env._observations, "batch", "observations checked and copied"),
            (env._actions, "prepare", "actions checked and copied"),
        ]
        parts = self_times(stepping(env), 200_000 // n + 500, functions)
        table(f"a step of native CartPole, n = {n}", parts, 1e-6, "us")


def images(n: int = 8, rounds: int = 25, repeat: int = 50) -> None:
    """The processor time of the parent and of the workers."""
    source, theirs = make_async(n, "forkserver"), SubprocVecEnv([ImageEnv] * n)
    ours = sb3compat.to_sb3(source)
    sides: list[tuple[str, VecEnv, Any]]
    sides = [("sb3compat", ours, source), ("SubprocVecEnv", theirs, theirs)]
    works = [(name, stepping(env), [p.pid for p in of.processes]) for name, env, of in sides]
    spent: defaultdict[tuple[str, str], float] = defaultdict(float)
    for _ in range(rounds):
        for name, work, pids in works:
            before, start = _processor_seconds(pids), time.process_time()
            for _ in range(repeat):
                work()
            spent[name, "the parent"] += time.process_time() - start
            spent[name, f"the {n} workers"] += _processor_seconds(pids) - before
    for name, _, _ in works:
        parts = {label: v / rounds / repeat for (of, label), v in spent.items() if of == name}
        table(f"processor time of a step of images, {name}", parts, 1e-6, "us")
    ours.close()
    theirs.close()


def _processor_seconds(pids: list[int]) -> float:
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9


def ppo(n: int = 1024) -> None:
    for epochs in (10, 4):
        sides = {
            "sb3compat": sb3compat.to_sb3(make_native(num_envs=n)),
            "DummyVecEnv": DummyVecEnv([make_cartpole] * n),
        }
        for name, env in sides.items():
            model = make_model(env, epochs)
            functions = [
                (model, "train", "training"),
                (model.policy, "forward", "choosing actions"),
                (env, "step", "the environments"),
                (model, "collect_rollouts", "SB3's loop over the rollout"),
            ]
            parts = self_times(learning(model), 10, functions)
            table(f"PPO, n = {n}, {epochs} epochs, {name}", parts, 1e-3, "ms")


def show() -> None:
    torch.set_num_threads(1)
    native()
    if Path("/proc").exists():
        images()
    ppo()
