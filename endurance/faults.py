"""A thousand faults, each in the middle of a stream that is compared with `DummyVecEnv`."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tests.interrupts import ERRORS
from tests.parallel.operations import PATIENT, Pair
from tests.parallel.teams import children
from tests.resources import held

# Points of the operations that are interrupted; about as many as they have.
POINTS = {"step": 1500, "reset": 1300, "echo": 900, "set_mark": 900}
# The share of each kind of fault, on processes and on Ray.
KINDS = {
    "processes": {
        "kill": 0.2, "stop": 0.1, "raise": 0.18, "hang": 0.06, "interrupt": 0.24,
        "full descriptors": 0.1,
    },
    "ray": {"kill": 0.03, "stop": 0.01, "raise": 0.04, "interrupt": 0.04},
}  # fmt: skip
WENT_ON = "stream went on"
# An environment takes so many faults at most.
MANY = 10
# More descriptors than the process has, and few enough to fill.
DESCRIPTORS = 256


class Faults:
    """Injects faults, and notes what each ended in.

    Args:
        backend: `"processes"` or `"ray"`.
        folder: A folder for the environments.
        seed: Of what is drawn.
    """

    def __init__(self, backend: str, folder: Path, seed: int) -> None:
        self.backend, self.folder = backend, folder
        self.rng = np.random.default_rng(seed)
        self.wrong: list[str] = []
        self.policies = ["raise", "restart"]  # by turns
        self.age = 0
        self.pair: Pair | None = None

    def inject(self, kind: str) -> str:
        """What a fault of this kind has ended in."""
        if self.pair is None or self.age >= MANY:
            self.pair = self.renewed()
        self.age += 1
        before = Counter(self.pair.endings)
        try:
            self.steps(self.pair)
            KIND_OF[kind](self, self.pair)
            self.steps(self.pair)
            self.pair.echo()
        except Exception:
            self.wrong.append(traceback.format_exc())
            given_up, self.pair = self.pair, None
            with suppress(Exception):  # otherwise its workers would be those of the next one, too
                given_up.close()
            return "wrong"
        return ", then ".join((self.pair.endings - before).keys()) or WENT_ON

    def renewed(self) -> Pair:
        """Another environment, with the other policy."""
        if self.pair is not None:
            self.pair.close()
        self.policies.reverse()
        policy = self.policies[0]
        more: dict[str, Any] = {"start_method": "fork", "timeout": 0.5}
        if self.backend == "ray":
            more = {"backend": "ray", "timeout": 10.0, "actor_options": {"num_cpus": 0.5}}
        shape = [("single", 2), (str(self.rng.choice(["sync", "single", "dummy"])), 2)]
        self.age = 0
        return Pair(self.folder, shape, workers=2, on_worker_lost=policy, **more)

    def steps(self, pair: Pair) -> None:
        for _ in range(3):
            pair.step(self.actions(pair))

    def actions(self, pair: Pair) -> Any:
        return self.rng.integers(4, size=pair.n)

    def number(self, stop: int) -> int:
        return int(self.rng.integers(stop))


def kill(faults: Faults, pair: Pair) -> None:
    if faults.number(2):  # in the middle of a step
        pair.step_async(faults.actions(pair))
    pair.kill(faults.number(2))
    pair.step_wait() if pair.waiting is not None else pair.step(faults.actions(pair))


def stop(faults: Faults, pair: Pair) -> None:
    pair.stop(faults.number(2))
    pair.step(faults.actions(pair))
    pair.go()


def fail(faults: Faults, pair: Pair) -> None:
    pair.arm(faults.number(pair.n), str(faults.rng.choice(["raise", "base", "die"])))
    pair.step(faults.actions(pair))


def hang(faults: Faults, pair: Pair) -> None:
    pair.arm(faults.number(pair.n), "hang")
    pair.step(faults.actions(pair))


def interrupt(faults: Faults, pair: Pair) -> None:
    name = str(faults.rng.choice([*POINTS]))
    if faults.number(3) == 0:
        pair.kill(faults.number(2))  # so that it is a replacement that is interrupted
    error = ERRORS[faults.number(len(ERRORS))]
    pair.interrupted(name, 1 + faults.number(POINTS[name]), error, faults.actions(pair))


def fill(faults: Faults, pair: Pair) -> None:
    """Leave a few descriptors, and make, replace or step in want of them."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, limits[1]))
    taken: list[int] = []
    replaced = faults.number(2)
    before, workers = held(alone=True), {*children()}
    said, pair.said = pair.said, (*pair.said, OSError)
    try:
        if replaced:
            pair.kill(faults.number(2))
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(faults.number(12)):
            os.close(taken.pop())
        start = faults.actions(pair)
        error = None
        try:
            # Python's own fork leaves a pipe behind if there is no descriptor for the next one.
            other = {"start_method": None, "timeout": PATIENT}
            pair.ours.step(start) if replaced else pair.make(**other).close()
        except pair.said as caught:
            error = caught
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        while taken:
            os.close(taken.pop())
        pair.said = said
    if replaced or isinstance(error, AssertionError):
        pair.recover(error)
    elif error is not None:
        del error  # which holds what was made
        assert {*children()} == workers, "workers are left"
        assert held(alone=True).descriptors <= before.descriptors, "descriptors are left"
        pair.note("error, nothing left")


KIND_OF: dict[str, Callable[[Faults, Pair], None]] = {
    "kill": kill,
    "stop": stop,
    "raise": fail,
    "hang": hang,
    "interrupt": interrupt,
    "full descriptors": fill,
}


def run(backend: str, number: int, seed: int = 0) -> dict[str, Any]:
    """Inject faults, and count what each kind has ended in."""
    if backend == "ray":
        import ray

        ray.init(
            address="local",
            num_cpus=4,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    ended: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        faults = Faults(backend, Path(folder), seed)
        for kind, share in KINDS[backend].items():
            for _ in range(max(1, round(number * share))):
                ended.setdefault(kind, Counter()).update([faults.inject(kind)])
        if faults.pair is not None:
            faults.pair.close()
    return {"ended": ended, "wrong": faults.wrong}


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
