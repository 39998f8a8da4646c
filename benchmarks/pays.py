"""From which cost of a step on workers pay: measured, and drawn.

    python benchmarks/pays.py --json docs/pays.json --plot docs/pays.svg
    python benchmarks/pays.py --read docs/pays.json --plot docs/pays.svg

Environments that compute for so long in each step, in `ParallelVecEnv` and in `DummyVecEnv`. Both
take turns in short blocks.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from envs import SlowEnv
from figures import figure_of, save
from measure import compare
from parallel import stepping
from stable_baselines3.common.vec_env import DummyVecEnv

import sb3compat

MICROSECONDS = (2, 5, 10, 20, 50, 100, 200, 500, 2000)
# What a line is called, the number of rows, and how they are held.
WAYS: dict[str, tuple[int, dict[str, Any]]] = {
    "16 rows, 2 workers": (16, {"workers": 2}),
    "16 rows, 1 worker and the parent": (16, {"workers": 1, "parent_steps": True}),
    "128 rows, 2 workers": (128, {"workers": 2}),
    "128 rows, 1 worker and the parent": (128, {"workers": 1, "parent_steps": True}),
}
BLOCK_SECONDS = 0.15

Curves = dict[str, list[float]]


def measure(rounds: int) -> Curves:
    """For each way, how many times the frames per second of `DummyVecEnv`, by cost of a step."""
    curves: Curves = {name: [] for name in WAYS}
    for cost in MICROSECONDS:
        make = partial(SlowEnv, cost * 1e-6)
        for name, (n, options) in WAYS.items():
            ours: Any = sb3compat.ParallelVecEnv([make] * n, **options)
            sides = stepping(ours), "DummyVecEnv", stepping(DummyVecEnv([make] * n))
            row = compare(name, n, *sides, rounds=rounds, frames=n, block=BLOCK_SECONDS)
            ours.close()
            curves[name].append(round(1 / row.ratio, 3))
            print(
                f"{cost:5} us a step, {name:36} {1 / row.ratio:6.2f} times DummyVecEnv", flush=True
            )
    return curves


def draw(curves: Curves, path: Path, cores: int) -> None:
    """The curves over the cost of a step, and the line from which on workers pay."""
    figure, (ax,) = figure_of(1)
    for name, ratios in curves.items():
        ax.plot(MICROSECONDS, ratios, marker="o", markersize=4, label=name)
    ax.axhline(1, linewidth=1, linestyle="--", label="DummyVecEnv")
    ax.set_title(f"When workers pay, on {cores} cores")
    ax.set(xscale="log", xlabel="what one step of one environment computes, µs")
    ax.set(ylabel="frames per second,\ntimes those of DummyVecEnv")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False, labelcolor="0.5")
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7, help="blocks for each side")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--read", type=Path, help="measure nothing, take the results from there")
    parser.add_argument("--plot", type=Path, help="draw into this file")
    args = parser.parse_args()
    if args.read:
        found = json.loads(args.read.read_text())
    else:
        found = {"cores": len(os.sched_getaffinity(0)), "curves": measure(args.rounds)}
    if args.json:
        args.json.write_text(json.dumps({**found, "us": MICROSECONDS}, indent=1) + "\n")
    if args.plot:
        draw(found["curves"], args.plot, found["cores"])


if __name__ == "__main__":
    main()
