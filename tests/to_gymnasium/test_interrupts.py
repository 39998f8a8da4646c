"""An exception at any point of an operation: no later call gets the answer to an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests import interrupts
from tests.interrupts import counting, interrupted
from tests.lockstep_back import dummy, subproc

vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.zeros(2, np.int64)


class OwnSubproc(vec_env.SubprocVecEnv):
    """A subclass, which is driven as a whole."""


KINDS: dict[str, Callable[[], Any]] = {
    "dummy": lambda: dummy(counting()),
    "subproc": lambda: subproc(counting()),
    "wrapped subproc": lambda: vec_env.VecMonitor(subproc(counting())),
    "wrapped dummy": lambda: vec_env.VecMonitor(dummy(counting())),
    "subclass": lambda: OwnSubproc(counting(), start_method="fork"),
}
MODES = {
    "dummy": tuple(AutoresetMode),
    "subproc": tuple(AutoresetMode),
    "wrapped subproc": (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    "wrapped dummy": (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    "subclass": (AutoresetMode.SAME_STEP,),
}
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "step": lambda env: env.step(ACTIONS),
    "reset": lambda env: env.reset(seed=20),
    "call": lambda env: env.call("add", 10),
    "set_attr": lambda env: env.set_attr("mark", [5, 5]),
    "render": lambda env: env.render(),
}
# The mode is of no matter to the others.
CASES = [
    (name, kind, mode)
    for name in OPERATIONS
    for kind, modes in MODES.items()
    for mode in (modes if name in ("step", "reset") else modes[:1])
]
READS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "get_attr": (lambda env: list(env.get_attr("row")), [0, 1]),
    "call": (lambda env: list(env.call("add", 3)), [3, 4]),
    "render": (lambda env: [int(frame[0, 0, 0]) for frame in env.render()], [0, 1]),
}


def started(kind: str, mode: AutoresetMode) -> Any:
    """An environment in whose next step an episode ends."""
    envs = sb3compat.to_gymnasium(KINDS[kind](), autoreset_mode=mode)
    envs.reset(seed=10)
    envs.step(ACTIONS)
    return envs


def reference(mode: AutoresetMode) -> Any:
    envs = SyncVectorEnv(counting(), autoreset_mode=mode)
    envs.reset(seed=10)
    envs.step(ACTIONS)
    return envs


def plain(result: Any) -> Any:
    """Without what `VecMonitor` adds."""
    *values, infos = result
    infos = {key: value for key, value in infos.items() if "episode" not in key}
    if "final_info" in infos:
        final = infos["final_info"]
        infos["final_info"] = {key: final[key] for key in final if "episode" not in key}
    return [*values, infos]


def step(envs: Any) -> Any:
    return plain(envs.step(ACTIONS))


def reset(envs: Any) -> Any:
    return plain(envs.reset(seed=7))


@pytest.mark.parametrize(
    ("name", "kind", "mode"),
    CASES,
    ids=[f"{name}, {kind}, {mode.name}" for name, kind, mode in CASES],
)
def test_interrupted_operation(name: str, kind: str, mode: AutoresetMode) -> None:
    unchanged, after_reset, fresh = (reference(mode) for _ in range(3))
    expected = [step(unchanged)]
    late = []
    if name == "reset":
        OPERATIONS[name](after_reset)
        late = [step(after_reset)]
    elif name == "step" and mode != AutoresetMode.DISABLED:
        late = [step(unchanged)]
    transcript = [reset(fresh), step(fresh), step(fresh)]
    for envs, done, where in interrupted(partial(started, kind, mode), OPERATIONS[name]):
        own = [*expected, *(late if done else [])]
        interrupts.check(envs, (step, reset), READS, own, transcript, where)
        interrupts.check_close(envs, envs.vec_env, where)
