"""How far one parent goes: its measured costs per worker, row and byte, and a simulation with them.

    python benchmarks/fan_in.py docs/scaling.json --measure    # minutes
    python benchmarks/fan_in.py docs/scaling.json

The parent's costs are processor times of its main thread; the least of several blocks counts, as
other work on the machine can only add to it. The simulation has one parent that sends to its
workers one after the other and takes their answers one after the other; workers step their rows one
by one.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from envs import ImageEnv, TinyEnv

import sb3compat

ROUNDS = 7
IMAGE_BYTES = 84 * 84 * 4


@dataclass(frozen=True)
class Costs:
    """What a step costs, in seconds.

    Attributes:
        step: The parent's part of each step, whatever it holds.
        worker: The parent's part for each worker: to send, to wait, to take the answer.
        row: The parent's part for each row: its info and what belongs to it.
        byte: The parent's part for each byte of observations.
        latency: From sending to an answer, for a worker that has next to nothing to do.
    """

    step: float
    worker: float
    row: float
    byte: float
    latency: float


# --- measuring --------------------------------------------------------------------------------


def measure(backend: str) -> Costs:
    """Fit the costs to the parent's times for some numbers of rows, workers and bytes."""
    rows, times = [], []
    for workers, n in product((1, 2, 4), (16, 128, 512)):
        rows.append([1, workers, n, 0])
        times.append(parent_seconds(backend, TinyEnv, n, workers))
    for workers, n in product((1, 2), (8, 32)):
        rows.append([1, workers, n, n * IMAGE_BYTES])
        times.append(parent_seconds(backend, ImageEnv, n, workers))
    # Relative errors count, so that small steps do as much as large ones.
    weights = 1 / np.array(times)
    fitted = np.linalg.lstsq(np.array(rows) * weights[:, None], np.ones(len(times)), rcond=None)[0]
    for row, seconds in zip(rows, times, strict=True):
        print(backend, row[1:], f"{seconds * 1e6:.0f} us, fitted {np.dot(row, fitted) * 1e6:.0f}")
    step, worker, row_cost, byte = (max(0.0, float(value)) for value in fitted)
    return Costs(step, worker, row_cost, byte, latency(backend))


def stepping(backend: str, make: Any, n: int, workers: int) -> Iterator[Any]:
    # Those on the parent's own node would share memory with it.
    options = {"resources": {"far": 1}} if backend == "ray" else None
    env = sb3compat.ParallelVecEnv(
        [make] * n, workers=workers, backend=backend, actor_options=options
    )
    actions = np.zeros(n, int)
    env.reset()
    for _ in range(20):
        env.step(actions)
    yield lambda: env.step(actions)
    env.close()


def parent_seconds(backend: str, make: Any, n: int, workers: int) -> float:
    """The processor time of the main thread for a step, at least."""
    blocks = []
    for step in stepping(backend, make, n, workers):
        for _ in range(ROUNDS):
            start = time.thread_time()
            for _ in range(50):
                step()
            blocks.append((time.thread_time() - start) / 50)
    return min(blocks)


def latency(backend: str) -> float:
    """The time from a step to its results, at least."""
    blocks = []
    for step in stepping(backend, TinyEnv, 1, 1):
        for _ in range(5 * ROUNDS):
            start = time.perf_counter()
            for _ in range(20):
                step()
            blocks.append((time.perf_counter() - start) / 20)
    return min(blocks)


def measured() -> dict[str, Costs]:
    """The costs of both backends; Ray's with two nodes in this machine."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    cluster.add_node(num_cpus=4, resources={"far": 4})
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        return {backend: measure(backend) for backend in ("processes", "ray")}
    finally:
        ray.shutdown()
        cluster.shutdown()


# --- simulating -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """What the user brings along.

    Attributes:
        step: Seconds of an environment's step, on average.
        spread: Their standard deviation, by that.
        size: The bytes of an observation.
        network: Bytes per second into the parent's machine.
    """

    step: float
    size: int = 16
    spread: float = 0.3
    network: float = 1.25e9  # 10 Gbit/s


def step_seconds(
    load: Load, shares: list[int], costs: Costs, far: bool, rng: random.Random
) -> float:
    """One step of a parent with these rows in its workers."""
    answers: list[float] = []
    # Half of a worker's cost is spent on sending to it.
    sent = costs.step / 2
    for rows in shares:
        sent += costs.worker / 2
        work = sum_of(load, rows, rng)
        heapq.heappush(answers, sent + max(0.0, costs.latency - costs.step - costs.worker) + work)
    return taken(load, shares, costs, far, sent, answers)


def taken(
    load: Load, shares: list[int], costs: Costs, far: bool, now: float, answers: list[float]
) -> float:
    """When the parent has taken the answers, which come at these times."""
    wire = now
    each = sum(shares) / len(shares) * load.size
    while answers:
        came = heapq.heappop(answers)
        if far:  # one wire for all
            wire = max(wire, came) + each / load.network
            came = wire
        now = max(now, came) + costs.worker / 2 + each * costs.byte
    return now + costs.step / 2 + sum(shares) * costs.row


def sum_of(load: Load, rows: int, rng: random.Random) -> float:
    return max(0.0, rng.gauss(rows * load.step, load.spread * load.step * rows**0.5))


def spread(rows: int, workers: int) -> list[int]:
    each, more = divmod(rows, workers)
    return [each + (worker < more) for worker in range(workers)]


def flat(load: Load, rows: int, workers: int, costs: Costs, far: bool, steps: int = 40) -> float:
    """Frames per second of one parent over all workers."""
    rng = random.Random(0)
    shares = spread(rows, workers)
    return rows * steps / sum(step_seconds(load, shares, costs, far, rng) for _ in range(steps))


def tree(
    load: Load, rows: int, machines: int, cores: int, costs: dict[str, Costs], steps: int = 40
) -> float:
    """Frames per second where each machine has an actor over processes for its cores."""
    rng = random.Random(0)
    inner, outer = costs["processes"], costs["ray"]
    total = 0.0
    for _ in range(steps):
        sent = outer.step / 2
        answers: list[float] = []
        shares = spread(rows, machines)
        for own in shares:
            sent += outer.worker / 2
            work = step_seconds(load, spread(own, cores), inner, False, rng)
            delay = max(0.0, outer.latency - outer.step - outer.worker)
            heapq.heappush(answers, sent + delay + work)
        total += taken(load, shares, outer, True, sent, answers)
    return rows * steps / total


# --- tables -----------------------------------------------------------------------------------

STEPS = {"2 us": 2e-6, "20 us": 20e-6, "200 us": 200e-6, "2 ms": 2e-3, "20 ms": 20e-3}
SIZES = {"16 B": 16, "1 kB": 1024, "28 kB": IMAGE_BYTES}


def show(costs: dict[str, Costs]) -> None:
    print("\n| backend | each step | each worker | each row | each MB | shortest round |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, each in costs.items():
        values = (each.step, each.worker, each.row, each.byte * 1e6, each.latency)
        print(f"| {name} | " + " | ".join(f"{value * 1e6:.1f} us" for value in values) + " |")
    show_cores(costs["processes"])
    show_machines(costs)


def show_cores(costs: Costs) -> None:
    print("\nProcesses of one machine, 16 rows for each core: how many times one core's frames/s")
    cores = (2, 4, 8, 16, 32, 64, 128)
    print("\n| step | observation | " + " | ".join(f"{each} cores" for each in cores) + " |")
    print("|---|---|" + "--:|" * len(cores))
    for (name, step), (size_name, size) in product(STEPS.items(), SIZES.items()):
        load = Load(step, size)
        gains = [flat(load, 16 * each, each, costs, False) * step for each in cores]
        print(f"| {name} | {size_name} | " + " | ".join(f"{gain:.1f}" for gain in gains) + " |")


def show_machines(costs: dict[str, Costs], cores: int = 16) -> None:
    print(f"\nMachines of {cores} cores, 16 rows for each core: cores that are put to use;")
    print("an actor for each core / an actor for each machine, over processes")
    machines = (1, 2, 4, 8, 16, 64)
    print("\n| step | observation | " + " | ".join(f"{each} machines" for each in machines) + " |")
    print("|---|---|" + "--:|" * len(machines))
    for (name, step), (size_name, size) in product(STEPS.items(), SIZES.items()):
        load = Load(step, size)
        cells = []
        for each in machines:
            rows = 16 * cores * each
            one = flat(load, rows, cores * each, costs["ray"], True) * step
            two = tree(load, rows, each, cores, costs) * step
            cells.append(f"{one:.0f} / {two:.0f}")
        print(f"| {name} | {size_name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path, help="where the costs are")
    parser.add_argument("--measure", action="store_true", help="measure them first")
    args = parser.parse_args()
    if args.measure:
        found = {name: asdict(costs) for name, costs in measured().items()}
        args.file.write_text(json.dumps(found, indent=1) + "\n")
    stored = json.loads(args.file.read_text())
    show({name: Costs(**values) for name, values in stored.items()})


if __name__ == "__main__":
    main()
