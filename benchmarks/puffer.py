"""PufferLib's Multiprocessing beside `ParallelVecEnv`: frames/s of both.

    python benchmarks/puffer.py --python path/to/an/environment/bin/python

PufferLib 1.0.1 needs an environment of its own: `pip install pufferlib==1.0.1 gymnasium==0.29.1
gym==0.23 'numpy<2' cython filelock pettingzoo==1.24 shimmy psutil rich rich_argparse`. Its workers
do not sleep between two steps, nor does its parent: they need a core each. So the sides cannot take
turns in blocks: each runs alone, several times, one after the other.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

SECONDS = 3.0
CASES = {"CartPole": 32, "images": 32}


def step_ours(make: Callable[[], Any], n: int, workers: int) -> Callable[[Any], Any]:
    import sb3compat

    env = sb3compat.ParallelVecEnv([make] * n, workers=workers)
    env.seed(0)
    env.reset()
    return env.step


def step_theirs(make: Callable[[], Any], n: int, workers: int) -> Callable[[Any], Any]:
    import pufferlib.emulation
    import pufferlib.vector

    def creator() -> Any:
        return pufferlib.emulation.GymnasiumPufferEnv(env_creator=make)

    backend = pufferlib.vector.Multiprocessing
    env = pufferlib.vector.make(creator, num_envs=n, num_workers=workers, backend=backend)
    env.reset()
    return partial(pufferlib.vector.step, env)


def frames_per_second(side: str, case: str, workers: int) -> float:
    import gymnasium as gym
    import numpy as np
    from envs import ImageEnv

    make = partial(gym.make, "CartPole-v1") if case == "CartPole" else ImageEnv
    n = CASES[case]
    step = {"ours": step_ours, "theirs": step_theirs}[side](make, n, workers)
    actions = np.random.default_rng(0).integers(2, size=(256, n))
    for number in range(100):
        step(actions[number])
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        step(actions[steps % 256])
        steps += 1
    return steps * n / (time.perf_counter() - start)


def compare(python: Path, rounds: int, workers: int) -> None:
    interpreters = {"ours": sys.executable, "theirs": str(python)}
    for case, n in CASES.items():
        found: dict[str, list[float]] = {side: [] for side in interpreters}
        for _ in range(rounds):
            for side, interpreter in interpreters.items():
                options = ["--side", side, "--case", case, "--workers", str(workers)]
                found[side].append(_run([interpreter, __file__, *options]))
        ours, theirs = (statistics.median(found[side]) for side in interpreters)
        print(
            f"{case}, n={n}: sb3compat {ours:,.0f} frames/s, PufferLib {theirs:,.0f} frames/s, "
            f"{ours / theirs:.2f} times"
        )


def _run(command: list[str]) -> float:
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        os.killpg(process.pid, signal.SIGKILL)  # PufferLib's workers would go on
    return float(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", type=Path, help="an interpreter that has PufferLib")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side runs")
    parser.add_argument("--side", choices=["ours", "theirs"], help="measure this one, here")
    parser.add_argument("--case", choices=CASES, default="CartPole", help="what it steps")
    parser.add_argument("--workers", type=int, default=2, help="how many of each side")
    args = parser.parse_args()
    if args.side:
        print(frames_per_second(args.side, args.case, args.workers), flush=True)
        signal.pause()
    elif args.python:
        compare(args.python, args.rounds, args.workers)
    else:
        parser.error("Expected --python, the interpreter that has PufferLib.")


if __name__ == "__main__":
    main()
