"""How the cost of `ParallelVecEnv` grows with rows and workers: measured, and drawn.

    python benchmarks/growth.py --json docs/growth.json --plot docs/growth.svg
    python benchmarks/growth.py --read docs/growth.json --plot docs/growth.svg

Two numbers for each size: frames/s of all workers, and the processor time that the parent spends
on each row and step.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from measure import make_actions

import sb3compat

ROWS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
WORKERS = (1, 2, 4)
BLOCKS = 5
BLOCK_SECONDS = 0.3
make_cartpole = partial(gym.make, "CartPole-v1")

Curve = list[dict[str, float]]


def measure() -> dict[str, Curve]:
    """A curve for each number of workers; medians over blocks."""
    curves: dict[str, Curve] = {str(workers): [] for workers in WORKERS}
    for n in ROWS:
        for workers in WORKERS:
            env = sb3compat.ParallelVecEnv([make_cartpole] * n, workers=workers)
            curves[str(workers)].append({"n": n, **_point(env)})
            env.close()
    return curves


def _point(env: sb3compat.ParallelVecEnv) -> dict[str, float]:
    actions = make_actions(env.num_envs)
    env.seed(0)
    env.reset()
    for _ in range(5):
        env.step(next(actions))
    blocks = []
    for _ in range(BLOCKS):
        steps, start, used = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - start < BLOCK_SECONDS:
            env.step(next(actions))
            steps += 1
        spent = time.perf_counter() - start, time.process_time() - used
        blocks.append([steps * env.num_envs / spent[0], spent[1] / steps / env.num_envs * 1e6])
    frames, parent = (statistics.median(values) for values in zip(*blocks, strict=True))
    return {"frames": frames, "parent_us": parent}


def draw(curves: dict[str, Curve], path: Path) -> None:
    """Both numbers over the rows, a line for each number of workers."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "sb3compat", "font.size": 10})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    panels: list[tuple[Any, str, str]] = [
        (axes[0], "frames", "frames/s"),
        (axes[1], "parent_us", "parent's processor time, µs per row and step"),
    ]
    for ax, key, label in panels:
        for workers, curve in curves.items():
            name = f"{workers} worker" + "s" * (workers != "1")
            ax.plot([p["n"] for p in curve], [p[key] for p in curve], marker="o", label=name)
        ax.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        ax.grid(visible=True, which="both", alpha=0.2)
    axes[0].legend()
    figure.savefig(path, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--read", type=Path, help="measure nothing, take the results from there")
    parser.add_argument("--plot", type=Path, help="draw into this file")
    args = parser.parse_args()
    curves = json.loads(args.read.read_text())["curves"] if args.read else measure()
    if args.json:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        args.json.write_text(json.dumps({"cores": cores, "curves": curves}, indent=1) + "\n")
    if args.plot:
        draw(curves, args.plot)
    for workers, curve in curves.items():
        for p in curve:
            numbers = f"{p['frames']:10,.0f} frames/s {p['parent_us']:8.2f} us of the parent a row"
            print(f"{workers} workers, {p['n']:5.0f} rows: {numbers}")


if __name__ == "__main__":
    main()
