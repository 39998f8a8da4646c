"""Every kind of wrong input, made, and the exception that it gets."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import sb3compat
from tests.interrupts import within
from tests.parallel.echoing import Echoing, MakeEchoing

# Longer messages are cut.
MOST = 420

GROUPS: dict[str, tuple[str, ...]] = {
    "Making a `ParallelVecEnv`": (
        "ParallelVecEnv(env)",
        "ParallelVecEnv(fn)",
        "ParallelVecEnv([])",
        "ParallelVecEnv([env])",
        "ParallelVecEnv(fns, 4)",
        "ParallelVecEnv(fns, workers=0)",
        "ParallelVecEnv(fns, workers=2.0)",
        "ParallelVecEnv(fns, workers='2')",
        "ParallelVecEnv(fns, timeout=0)",
        "ParallelVecEnv(fns, timeout='5')",
        "ParallelVecEnv(fns, backend='mpi')",
        "ParallelVecEnv(fns, backend='ray', start_method='fork')",
        "ParallelVecEnv(fns, actor_options={'num_cpus': 1})",
        "ParallelVecEnv(fns, start_method='thread')",
        "ParallelVecEnv(fns, on_worker_lost='ignore')",
        "ParallelVecEnv([lambda: env, lambda: env], workers=1)",
        "ParallelVecEnv([lambda: None])",
        "ParallelVecEnv([lambda: gym.make('No-v0')])",
        "ParallelVecEnv([lambda: gym.make('CartPole-v1'), lambda: gym.make('Acrobot-v1')])",
        "ParallelVecEnv([lambda: Echoing(generator)])",
        "ParallelVecEnv([lambda: 1 / 0])",
        "ParallelVecEnv([lambda: exit(3)], start_method='fork')",
        "ParallelVecEnv([lambda: sleep(60)], start_method='fork', timeout=0.2)",
    ),
    "Using a `ParallelVecEnv`": (
        "used().step([0])",
        "used().step([0, 'a'])",
        "used().step(np.zeros((2, 3)))",
        "used().step_wait()",
        "twice(used())",
        "waiting(used()).get_attr('mark')",
        "closed().step([0, 0])",
        "closed().reset()",
        "used().seed('x')",
        "used().seed([1, 2])",
        "used().set_options([{}])",
        "used().set_options(5)",
        "used().get_attr('no_such')",
        "used().get_attr('mark', indices=7)",
        "used().env_method('no_such')",
        "used().env_method('echo', generator)",
        "pickle.dumps(used())",
    ),
    "`to_sb3`": (
        "to_sb3(env)",
        "to_sb3(fns)",
        "to_sb3('CartPole-v1')",
        "to_sb3(SyncVectorEnv(fns), autoreset_mode='sometimes')",
        "to_sb3(SyncVectorEnv(fns), autoreset_mode='SAME_STEP')",
        "to_sb3(SyncVectorEnv(fns), timeout=1)",
        "to_sb3(AsyncVectorEnv(fns), timeout=-1)",
        "to_sb3(SyncVectorEnv([lambda: Nested(0)]))",
        "reset(to_sb3(SyncVectorEnv(fns))).step([0])",
        "reset(to_sb3(SyncVectorEnv(fns))).step([0.5, 1.5])",
        "reset(to_sb3(AsyncVectorEnv(fns))).env_method('no_such')",
        "to_sb3(SyncVectorEnv([lambda: Misshapen(0)])).reset()",
    ),
    "`to_gymnasium`": (
        "to_gymnasium(env)",
        "to_gymnasium(dummy()).reset(seed=[1])",
        "to_gymnasium(dummy()).reset(seed='x')",
        "to_gymnasium(dummy()).reset(options={'reset_mask': np.zeros(2, bool)})",
        "started(to_gymnasium(dummy())).step([0])",
        "started(to_gymnasium(dummy())).call('no_such')",
    ),
    "`make_vec_env`": (
        "make_vec_env('No-v0')",
        "make_vec_env('CartPole-v1', n_envs=0)",
        "make_vec_env('CartPole-v1', n_envs=1.5)",
        "make_vec_env('CartPole-v1', vectorization_mode='threads')",
        "make_vec_env('CartPole-v1', num_envs=4)",
        "make_vec_env('CartPole-v1', vec_env_cls=list)",
        "make_vec_env('CartPole-v1', vectorization_mode='sync', workers=2)",
        "make_vec_env('CartPole-v1', vec_env_kwargs={'shared': True})",
    ),
}


class Nested(Echoing):
    """A space that SB3 has no way to batch."""

    observation_space: Any = spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})})


class Misshapen(Echoing):
    """Observations of another shape than the space says."""

    def _observation(self) -> Any:
        return np.zeros(7, np.float32)


def names(opened: list[Any]) -> dict[str, Any]:
    """What the code of a mistake may name; `opened` gets the environments that are to be closed."""
    import pickle
    import time

    from stable_baselines3.common.vec_env import DummyVecEnv

    fns: list[Any] = [MakeEchoing(row) for row in range(2)]

    def unreset() -> Any:
        opened.append(sb3compat.ParallelVecEnv(fns, workers=1, start_method="fork"))
        return opened[-1]

    def reset(env: Any) -> Any:
        env.reset()
        return env

    def waiting(env: Any) -> Any:
        env.step_async([0, 0])
        return env

    def closed() -> Any:
        env = unreset()
        env.close()
        return env

    own = {name: getattr(sb3compat, name) for name in sb3compat.__all__}
    return own | {
        "AsyncVectorEnv": AsyncVectorEnv, "Echoing": Echoing, "Misshapen": Misshapen,
        "Nested": Nested, "SyncVectorEnv": SyncVectorEnv, "closed": closed,
        "dummy": lambda: DummyVecEnv(fns), "env": Echoing(0), "fn": fns[0], "fns": fns,
        "generator": (number for number in range(3)), "gym": gym, "np": np, "pickle": pickle,
        "reset": reset, "sleep": time.sleep, "started": reset, "unreset": unreset,
        "twice": lambda env: waiting(waiting(env)), "used": lambda: reset(unreset()),
        "waiting": waiting,
    }  # fmt: skip


def made(code: str) -> str:
    """The exception that the code gets, or that there is none."""
    opened: list[Any] = []
    try:
        with within(60):
            opened.append(eval(code, names(opened)))
        return ""
    except BaseException as error:
        return f"{type(error).__name__}: {shortened(str(error))}"  # `within`: a call hangs
    finally:
        for env in opened:
            if hasattr(env, "close"):
                env.close()


def shortened(message: str) -> str:
    """A message on one line, without what differs from run to run."""
    line = re.sub(r" at 0x[0-9a-f]+", "", " ".join(message.split()))
    line = line.replace(str(Path(__file__).parents[1]), "…")
    return line if len(line) <= MOST else f"{line[:MOST]}…"


def all_made() -> Iterator[tuple[str, str, str]]:
    """The group, the code, and what it gets."""
    for group, codes in GROUPS.items():
        for code in codes:
            yield group, code, made(code)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(list(all_made())))
