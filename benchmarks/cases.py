"""What is compared with what: one function for each topic."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from cluster import compare_with_single_actors
from envs import ImageEnv, TinyEnv
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList
from measure import Row, Work, compare, make_actions, median
from parallel import parallel
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecMonitor

import sb3compat
from sb3compat._convert.infos import TRUNCATED
from sb3compat._convert.split_infos import split_infos
from sb3compat._ipc.framing import header
from sb3compat._parallel.messages import dumps_command, dumps_make
from sb3compat._parallel.serve import STEP
from sb3compat._parallel.worker import Worker

_STEP = header(len(STEP)) + STEP

make_cartpole = partial(gym.make, "CartPole-v1")
make_native = partial(gym.make_vec, "CartPole-v1", vectorization_mode="vector_entry_point")


def stepping(env: VecEnv) -> Work:
    actions = make_actions(env.num_envs)
    env.seed(0)
    env.reset()
    return lambda: env.step(next(actions))


def stepping_raw(num_envs: int, make_infos: Work) -> Work:
    """Step the native environment itself, and make a list of infos."""
    env: gym.vector.VectorEnv[Any, Any, Any] = make_native(num_envs=num_envs)
    actions = make_actions(num_envs)
    env.reset(seed=0)
    return lambda: (env.step(next(actions)), make_infos())


def empty_infos(num_envs: int) -> list[dict[str, Any]]:
    return [{} for _ in range(num_envs)]


def least_infos(num_envs: int) -> list[dict[str, Any]]:
    """What SB3 expects in each row, made in the fastest way."""
    return list(map(dict.copy, repeat({TRUNCATED: False}, num_envs)))


def sync(rounds: int) -> Iterator[Row]:
    for n in (1, 8, 64):
        makers: list[Callable[[], gym.Env[Any, Any]]] = [make_cartpole] * n
        source = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        ours, theirs = stepping(sb3compat.to_sb3(source)), stepping(DummyVecEnv(makers))
        aim = 0.88 if n > 1 else None
        yield compare("Sync CartPole", n, ours, "DummyVecEnv", theirs, rounds=rounds, aim=aim)


def native(rounds: int) -> Iterator[Row]:
    for n, aim in ((64, 1.45), (1024, 1.2), (4096, 1.15)):
        ours, what = stepping(sb3compat.to_sb3(make_native(num_envs=n))), "native CartPole"
        theirs = stepping_raw(n, partial(empty_infos, n))
        yield compare(what, n, ours, "the env and n empty dicts", theirs, rounds=rounds, aim=aim)
        theirs = stepping_raw(n, partial(least_infos, n))
        yield compare(what, n, ours, "the env and n dicts with the key", theirs, rounds=rounds)


def infos(rounds: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for n in (64, 1024, 4096):
        a, b, c, d = rng.random((4, n))
        e, f = rng.integers(100, size=n), rng.random(n) < 0.5
        given: dict[str, Any] = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
        given |= {f"_{key}": np.ones(n, bool) for key in given}
        ours = partial(split_infos, given, n)
        wrapper = DictInfoToList(gym.make_vec("CartPole-v1", num_envs=n))
        convert = partial(wrapper._convert_info_to_list, given)

        def literal(columns: tuple[Any, ...] = (a, b, c, d, e, f)) -> list[dict[str, Any]]:
            return [
                {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
                for a, b, c, d, e, f in zip(*(k.tolist() for k in columns), strict=True)
            ]

        what, aim = "6 info columns", 1.2 if n >= 1024 else 1.5
        other = 0.55 if n >= 1024 else 0.65
        yield compare(what, n, ours, "DictInfoToList", convert, rounds=rounds, aim=other)
        yield compare(what, n, ours, "a dict literal by hand", literal, rounds=rounds, aim=aim)


def images(rounds: int) -> Iterator[Row]:
    for n in (2, 8):
        # Sets of workers differ more from one another than the rounds of one set do.
        sets = []
        for _ in range(5):
            source = make_async(n, "forkserver")
            ours, theirs = sb3compat.to_sb3(source), SubprocVecEnv([ImageEnv] * n)
            sides = stepping(ours), "SubprocVecEnv", stepping(theirs)
            sets.append(compare("Async images", n, *sides, rounds=rounds, aim=0.5, frames=n))
            ours.close()
            theirs.close()
        yield median(sets)


def make_async(n: int, method: str | None) -> AsyncVectorEnv[Any, Any]:
    # SubprocVecEnv's workers reset within the step, too.
    return AsyncVectorEnv([ImageEnv] * n, context=method, autoreset_mode=AutoresetMode.SAME_STEP)


def memory(rounds: int) -> Iterator[Row]:
    """The memory of one worker: private, which each one more takes, and resident."""
    pairs = [("default", None), ("forkserver", "forkserver"), ("spawn", "spawn")]
    for name, method in pairs:
        source, theirs = make_async(2, method), SubprocVecEnv([ImageEnv] * 2, start_method=method)
        ours = sb3compat.to_sb3(source)
        for env in (ours, theirs):
            work = stepping(env)
            for _ in range(100):
                work()
        mine, its = (_memory(env.processes[1].pid) for env in (source, theirs))
        for what in ("private", "resident") if mine else ():
            values = mine[what], its[what]
            ratio = values[0] / values[1]
            label = f"worker, {what} memory"
            other = f"SubprocVecEnv, {name} start"
            yield Row(label, 1, other, *values, "MB", ratio, ratio, ratio)
        ours.close()
        theirs.close()


def _memory(pid: int | None) -> dict[str, float]:
    """What Linux says of a process, in MB; nothing elsewhere."""
    path = Path(f"/proc/{pid}/smaps_rollup")
    if not path.exists():
        return {}
    fields = (line.split() for line in path.read_text().splitlines()[1:])
    kilobytes = {name: int(value) for name, value, _ in fields}
    private = kilobytes["Private_Clean:"] + kilobytes["Private_Dirty:"]
    return {"private": private / 1e3, "resident": kilobytes["Rss:"] / 1e3}


def back(rounds: int) -> Iterator[Row]:
    """The way back: a `VecEnv` as a `VectorEnv`, against both kinds of its own."""
    n = 8
    fns: list[Callable[[], gym.Env[Any, Any]]] = [make_cartpole] * n
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        what = f"back, {mode.value}, Dummy"
        ours = stepping_vector(sb3compat.to_gymnasium(DummyVecEnv(fns), autoreset_mode=mode))
        theirs = stepping(DummyVecEnv(fns))
        yield compare(what, n, ours, "DummyVecEnv", theirs, rounds=rounds, aim=1.1)
        theirs = stepping_vector(SyncVectorEnv(fns, autoreset_mode=mode))
        yield compare(what, n, ours, "SyncVectorEnv", theirs, rounds=rounds)
    ours = stepping_vector(sb3compat.to_gymnasium(VecMonitor(DummyVecEnv(fns))))
    theirs = stepping(VecMonitor(DummyVecEnv(fns)))
    yield compare("back, VecMonitor", n, ours, "the same alone", theirs, rounds=rounds)
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        envs = sb3compat.to_gymnasium(SubprocVecEnv([ImageEnv] * n), autoreset_mode=mode)
        parallel = AsyncVectorEnv([ImageEnv] * n, context="forkserver", autoreset_mode=mode)
        sides = stepping_vector(envs), "AsyncVectorEnv", stepping_vector(parallel)
        yield compare(f"back, {mode.value}, Subproc", n, *sides, rounds=rounds, frames=n)
        envs.close()
        parallel.close()


def stepping_vector(env: gym.vector.VectorEnv[Any, Any, Any]) -> Work:
    actions = make_actions(env.num_envs)
    env.reset(seed=0)
    return lambda: env.step(next(actions))


def ppo(rounds: int) -> Iterator[Row]:
    for n in (64, 1024):
        for epochs in (10, 4):
            ours = learning(make_model(sb3compat.to_sb3(make_native(num_envs=n)), epochs))
            theirs = learning(make_model(DummyVecEnv([make_cartpole] * n), epochs))
            what, aim = f"PPO, {epochs} epochs", 0.5 if n == 1024 else None
            yield compare(
                what,
                n,
                ours,
                "DummyVecEnv",
                theirs,
                rounds=max(4, rounds // 2),
                aim=aim,
                frames=n * n_steps(n),
            )


def n_steps(num_envs: int) -> int:
    """The length of a rollout: SB3's 2048 frames, but 16 steps at least."""
    return max(16, 2048 // num_envs)


def make_model(env: VecEnv, epochs: int) -> PPO:
    """A model that trains on each rollout in four batches; the rest are SB3's defaults."""
    steps = n_steps(env.num_envs)
    return PPO(
        "MlpPolicy",
        env,
        n_steps=steps,
        batch_size=env.num_envs * steps // 4,
        n_epochs=epochs,
        seed=0,
        device="cpu",
    )


def learning(model: PPO) -> Work:
    """One rollout and the training on it."""
    frames = model.n_envs * model.n_steps
    return lambda: model.learn(frames, reset_num_timesteps=False)


def exchange(rounds: int) -> Iterator[Row]:
    """What the parent itself spends on the messages of a step, and a worker on a native part."""
    for workers, aim in ((1, 6.0), (2, 9.0), (4, 15.0)):
        env: Any = sb3compat.ParallelVecEnv([TinyEnv] * workers, workers=workers)
        env.reset()
        team, actions = env._source._workers, [np.zeros(workers, np.int64)]

        def once(team: Any = team, actions: Any = actions) -> None:
            team.send_step(actions)
            team.collect()

        def by_hand(team: Any = team) -> None:
            numbers = [line.pipe.fileno() for line in team._lines.values()]
            for number in numbers:
                os.write(number, _STEP)
            for number in numbers:
                os.read(number, 100)

        what, other = "exchange, parent's share", "write and read"
        yield used(what, workers, once, other, by_hand, rounds, aim)
        env.close()
    ours, n = native_part(4096), 4096
    raw = stepping_raw(n, lambda: None)
    yield used("native part in a worker", n, ours, "the env alone", raw, rounds, 400.0)


def used(what: str, n: int, ours: Work, other: str, theirs: Work, rounds: int, aim: float) -> Row:
    """The processor time of this thread, in turns; the aim is in microseconds."""

    def spent(work: Work, repeat: int = 300) -> float:
        start = time.thread_time()
        for _ in range(repeat):
            work()
        return (time.thread_time() - start) / repeat * 1e6

    blocks = [(spent(ours), spent(theirs)) for _ in range(rounds)]
    low, middle, high = statistics.quantiles((a / b for a, b in blocks), n=4)
    mine, its = (statistics.median(times) for times in zip(*blocks, strict=True))
    return Row(what, n, other, mine, its, "us", middle, low, high, aim / its)


def native_part(n: int) -> Work:
    """The step of a worker whose part is a native environment, here in this process."""
    worker = Worker(lambda size, way: bytearray(size))
    worker.run(dumps_make([partial(make_native, num_envs=n)], 0))
    worker.run(dumps_command("attach", n, slice(0, n), None))
    worker.run(dumps_command("reset", [None] * n, None))
    actions = make_actions(n)

    def step() -> None:
        worker.buffers.actions[0][...] = next(actions)
        worker.step()

    return step


TOPICS: dict[str, Callable[[int], Iterator[Row]]] = {
    "sync": sync,
    "native": native,
    "infos": infos,
    "images": images,
    "memory": memory,
    "back": back,
    "exchange": exchange,
    "parallel": parallel,
    "ppo": ppo,
    # The last one, as it starts threads in this process.
    "ray": compare_with_single_actors,
}
