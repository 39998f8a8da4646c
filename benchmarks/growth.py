"""How time and memory for a row grow with the number of rows: measured, and drawn.

    python benchmarks/growth.py --json docs/growth.json --plot docs/growth.svg
    python benchmarks/growth.py --read docs/growth.json --plot docs/growth.svg

CartPole, natively vectorized in this process and as single environments in workers. Times are
medians over blocks; memory is the private memory that the environments add, here and in workers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from figures import figure_of, save
from measure import make_actions, seconds
from parallel import children_of_this, private_memory
from stable_baselines3.common.vec_env import DummyVecEnv

import sb3compat

NATIVE = (64, 256, 1024, 4096, 16384, 65536)
ROWS = (8, 32, 128, 512, 1024)
BLOCKS = 7
make_cartpole = partial(gym.make, "CartPole-v1")
make_native = partial(gym.make_vec, "CartPole-v1", vectorization_mode="vector_entry_point")

# The points of a line, as number of rows and value.
Curve = list[tuple[int, float]]


class Raw:
    """A native environment with the methods that are used here of a `VecEnv`."""

    def __init__(self, num_envs: int) -> None:
        self.env, self.num_envs = make_native(num_envs=num_envs), num_envs
        self.reset, self.step, self.close = self.env.reset, self.env.step, self.env.close


def workers(count: int, n: int) -> Any:
    return sb3compat.ParallelVecEnv([make_cartpole] * n, workers=count)


LINES: dict[str, tuple[tuple[int, ...], Callable[[int], Any]]] = {
    "native, without an adapter": (NATIVE, Raw),
    "native, to_sb3": (NATIVE, lambda n: sb3compat.to_sb3(make_native(num_envs=n))),
    "single, DummyVecEnv": (ROWS, lambda n: DummyVecEnv([make_cartpole] * n)),
    "single, 1 worker": (ROWS, partial(workers, 1)),
    "single, 2 workers": (ROWS, partial(workers, 2)),
}
LABELS = {
    "native, without an adapter": "natively vectorized CartPole alone",
    "native, to_sb3": "natively vectorized CartPole, in to_sb3",
    "single, DummyVecEnv": "single CartPoles in DummyVecEnv",
    "single, 1 worker": "single CartPoles in ParallelVecEnv, 1 worker",
    "single, 2 workers": "single CartPoles in ParallelVecEnv, 2 workers",
}
MEMORY = ("native, to_sb3", "single, DummyVecEnv", "single, 2 workers")


def measure() -> dict[str, dict[str, Curve]]:
    """Nanoseconds and kilobytes for a row, for each line."""
    time: dict[str, Curve] = {name: [] for name in LINES}
    memory: dict[str, Curve] = {name: [] for name in MEMORY}
    spawn = multiprocessing.get_context("spawn")
    # Each in a new process, which has no memory left over from the one before.
    with ProcessPoolExecutor(1, spawn, max_tasks_per_child=1) as executor:
        for name, (sizes, _) in LINES.items():
            for n in sizes:
                nanoseconds, kilobytes = executor.submit(point, name, n).result()
                time[name].append((n, nanoseconds))
                if name in memory:
                    memory[name].append((n, kilobytes))
                print(f"{name:28} {n:6} rows: {nanoseconds:10,.0f} ns, {kilobytes:8,.1f} kB a row")
    return {"ns": time, "kB": memory}


def point(name: str, n: int) -> tuple[float, float]:
    """Nanoseconds and kilobytes for a row, of one line and one number of rows."""
    make = LINES[name][1]
    warm = make(1)  # what the first environment imports is not for the rows
    warm.reset()
    before = _private()
    env = make(n)
    env.reset()
    nanoseconds = _nanoseconds(env)
    kilobytes = max(0.0, _private() - before) * 1000 / n
    env.close()
    warm.close()
    return nanoseconds, kilobytes


def _nanoseconds(env: Any) -> float:
    actions: Iterator[Any] = make_actions(env.num_envs)
    work = lambda: env.step(next(actions))  # noqa: E731
    repeat = max(2, round(0.1 / min(seconds(work, 1) for _ in range(5))))
    return statistics.median(seconds(work, repeat) for _ in range(BLOCKS)) / env.num_envs * 1e9


def _private() -> float:
    """The private memory of this process and of its workers, in MB."""
    return private_memory(os.getpid()) + sum(map(private_memory, children_of_this()))


def draw(found: dict[str, dict[str, Curve]], path: Path, cores: int) -> None:
    """Both numbers over the rows."""
    figure, axes = figure_of(2)
    figure.set_size_inches(9.4, 4.6)
    panels = [
        (axes[0], "ns", f"Time of a step for each row, on {cores} cores", "nanoseconds a row"),
        (axes[1], "kB", "Memory for each row", "private memory, kilobytes a row"),
    ]
    for ax, key, title, label in panels:
        for name, curve in found[key].items():
            colour = f"C{list(LINES).index(name)}"
            ax.plot(*zip(*curve, strict=True), marker="o", markersize=4, color=colour)
        ax.set(xscale="log", yscale="log", xlabel="rows", ylabel=label, title=title)
    labels = [LABELS[name] for name in LINES]
    figure.legend(axes[0].lines, labels, loc="outside lower center", ncols=2, frameon=False)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--read", type=Path, help="measure nothing, take the results from there")
    parser.add_argument("--plot", type=Path, help="draw into this file")
    args = parser.parse_args()
    found = json.loads(args.read.read_text()) if args.read else None
    found = found or {"cores": len(os.sched_getaffinity(0)), **measure()}
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    if args.plot:
        draw({key: found[key] for key in ("ns", "kB")}, args.plot, found["cores"])


if __name__ == "__main__":
    main()
