"""What a `VecEnv` keeps: infos, and seeds and options for its next reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from sb3compat._upstream import vec_env as upstream
from tests.envs import fns
from tests.handwritten import CountingVecEnv

sb3: Any = pytest.importorskip("stable_baselines3.common.vec_env")


class Skipping(sb3.DummyVecEnv):  # type: ignore[misc]
    """Skips the `__init__` of SB3's, and so has neither seeds, nor options, nor infos."""

    def __init__(self) -> None:
        whole = sb3.DummyVecEnv(fns(1))
        gone = ("_seeds", "_options", "reset_infos")
        vars(self).update({k: v for k, v in vars(whole).items() if k not in gone})

    def reset(self) -> Any:
        self.envs[0].reset()
        return self._obs_from_buf()


def plain() -> Any:
    return sb3.DummyVecEnv(fns())


def adapted() -> Any:
    return sb3compat.to_sb3(SyncVectorEnv(fns()))


def test_rows_that_return_the_same_info_share_it() -> None:
    env = plain()
    env.reset()
    env.step([0, 0])
    assert not upstream.shares_infos(env)
    env.buf_infos[1] = env.buf_infos[0]
    assert upstream.shares_infos(env)


@pytest.mark.parametrize("make", [plain, adapted, Skipping])
def test_seeds_and_options_wait_and_are_forgotten(make: Callable[[], Any]) -> None:
    env = make()
    n = env.num_envs
    assert upstream.waiting_seeds(env) == [None] * n
    assert upstream.waiting_options(env) == [{}] * n
    given: list[Any] = [{"x": row} for row in range(n)]
    upstream.set_waiting_seeds(env, [7] * n)
    upstream.set_waiting_options(env, given)
    assert upstream.waiting_seeds(env) == [7] * n
    assert all(a is b for a, b in zip(upstream.waiting_options(env), given, strict=True))
    upstream.forget_waiting(env)
    assert upstream.waiting_seeds(env) == [None] * n
    assert upstream.waiting_options(env) == [{}] * n


def test_what_is_only_like_a_vec_env_may_keep_nothing() -> None:
    env = CountingVecEnv()
    assert upstream.waiting_seeds(env) == upstream.waiting_options(env) == []
    upstream.forget_waiting(env)


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("wrap", [lambda env: env, sb3.VecMonitor])
def test_user_class_that_skips_the_init_of_sb3_is_not_accused(wrap: Any, mode: str) -> None:
    envs = sb3compat.to_gymnasium(wrap(Skipping()), autoreset_mode=mode)
    envs.reset()
    envs.step([0])
