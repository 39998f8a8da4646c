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
from tests.interrupts import attempt, counting, interrupted
from tests.lockstep import same
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


def check(envs: Any, expected: list[Any], mode: AutoresetMode, where: str) -> None:
    interrupts.check_reads(envs, READS, where)
    got, error = interrupts.answered(lambda: envs.step(ACTIONS), where)
    wrong = [
        attempt(lambda each=each: same(plain(got), plain(each)), AssertionError)[1]
        for each in ([] if error else expected)
    ]
    assert error or None in wrong, f"{where}: step returned {got}"
    first, error = attempt(lambda: envs.reset(seed=7), sb3compat.WorkerError)
    if error:
        assert "Close this environment" in str(error), where
    else:
        fresh = reference(mode)
        same(plain(first), plain(fresh.reset(seed=7)), where)
        same(plain(envs.step(ACTIONS)), plain(fresh.step(ACTIONS)), where)
        same(plain(envs.step(ACTIONS)), plain(fresh.step(ACTIONS)), where)
    interrupts.check_close(envs, envs.vec_env, where)


@pytest.mark.parametrize(
    ("name", "kind", "mode"),
    CASES,
    ids=[f"{name}, {kind}, {mode.name}" for name, kind, mode in CASES],
)
def test_interrupted_operation(name: str, kind: str, mode: AutoresetMode) -> None:
    same_step = reference(mode)
    expected = [same_step.step(ACTIONS)]
    late = []
    if name == "reset":
        after_reset = reference(mode)
        after_reset.reset(seed=20)
        late = [after_reset.step(ACTIONS)]
    elif name == "step" and mode != AutoresetMode.DISABLED:
        late = [same_step.step(ACTIONS)]
    for envs, done, where in interrupted(partial(started, kind, mode), OPERATIONS[name]):
        check(envs, [*expected, *(late if done else [])], mode, where)
