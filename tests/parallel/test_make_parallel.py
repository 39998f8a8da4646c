"""`make_vec_env(vectorization_mode="parallel")`: SB3's stream, in light workers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import sb3compat
from tests.envs import WorkerReport
from tests.lockstep import same, timeless


@pytest.mark.parametrize("of_sb3", [False, True])
def test_parallel_equals_sb3s_function_and_its_workers_are_light(of_sb3: bool) -> None:
    env_util = pytest.importorskip("stable_baselines3.common.env_util")
    make = partial(
        env_util.make_vec_env if of_sb3 else sb3compat.make_vec_env,
        "CartPole-v1", n_envs=3, seed=1, wrapper_class=WorkerReport,
    )  # fmt: skip
    if of_sb3:
        workers = {"workers": 2, "start_method": "fork"}
        ours = make(vec_env_cls=sb3compat.ParallelVecEnv, vec_env_kwargs=workers)
    else:
        ours = make(vectorization_mode="parallel", workers=2, timeout=60)
    theirs = env_util.make_vec_env("CartPole-v1", n_envs=3, seed=1, wrapper_class=WorkerReport)
    assert isinstance(ours, sb3compat.ParallelVecEnv)
    assert len(ours.rows_of_worker) == 2
    same(ours.reset(), theirs.reset())
    for _ in range(40):
        got, expected = (env.step(np.ones(3, int)) for env in (ours, theirs))
        same((*got[:3], timeless(got[3])), (*expected[:3], timeless(expected[3])))
    assert ours.env_method("get_episode_lengths") == theirs.env_method("get_episode_lengths")
    for name in () if of_sb3 else ("torch", "stable_baselines3"):
        assert ours.env_method("loaded", name) == [False] * 3
    monitor = pytest.importorskip("stable_baselines3.common.monitor").Monitor
    assert ours.env_is_wrapped(monitor) == [True] * 3
    ours.close()


def test_class_of_our_own_means_parallel() -> None:
    env = sb3compat.make_vec_env(
        "CartPole-v1",
        2,
        vec_env_cls=sb3compat.ParallelVecEnv,
        vec_env_kwargs={"workers": 1, "start_method": "fork"},
    )
    assert isinstance(env, sb3compat.ParallelVecEnv)
    assert env.get_attr("total_steps") == [0, 0]
    env.close()


@pytest.mark.parametrize("mode", ["sync", "async", None, "native"])
def test_number_of_workers_is_for_parallel_only(mode: str | None) -> None:
    with pytest.raises(ValueError, match="vectorization_mode='parallel'"):
        sb3compat.make_vec_env("CartPole-v1", 2, vectorization_mode=mode, workers=2)


def test_other_arguments_of_parallel_are_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match="Did you mean vectorization_mode='async'"):
        sb3compat.make_vec_env(
            "CartPole-v1", 2, vectorization_mode="parallel", vec_env_kwargs={"shared_memory": True}
        )
