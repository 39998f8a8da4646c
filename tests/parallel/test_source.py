"""The rows in workers, as their parent drives them: steps, commands to single rows, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat import ParallelVecEnv
from tests.envs import Returns, fns
from tests.lockstep_back import back_programs, lockstep
from tests.parallel.teams import forked, parts_of, unshifted
from tests.profiles import examples
from tests.to_sb3.driving import mode_of

STEP = np.zeros(5, int)


@pytest.fixture
def env() -> Any:
    made = forked(fns(5, infos="none", lengths=(2,)), 2)
    made.reset()
    return made


def test_infos_are_distinct_dicts(env: Any) -> None:
    for _ in range(3):
        infos = env.step(STEP)[3]
        assert len({id(info) for info in infos}) == 5
        assert all(type(info["TimeLimit.truncated"]) is bool for info in infos)


# --- the way to Gymnasium -------------------------------------------------------------------------


@mode_of
@given(data=st.data(), n=st.integers(1, 4), workers=st.integers(1, 3))
@settings(max_examples=examples(60))
def test_single_environments_equal_sync_vector_env(
    mode: AutoresetMode, data: st.DataObject, n: int, workers: int
) -> None:
    chosen = data.draw(unshifted(("none", "plain")))
    program = data.draw(back_programs(n))
    lockstep(chosen, n, mode, lambda fns: forked(fns, workers), program, rounds=False)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
@given(data=st.data(), workers=st.integers(1, 2))
@settings(max_examples=examples(40))
def test_vector_environments_equal_sync_vector_env(
    mode: AutoresetMode, data: st.DataObject, workers: int
) -> None:
    chosen = data.draw(unshifted(("none", "plain")))
    shape = [("sync", 2), ("single", 1)]
    program = data.draw(back_programs(3))
    build = lambda fns: forked(parts_of(fns, shape), workers)  # noqa: E731
    lockstep(chosen, 3, mode, build, program, rounds=True, whole=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: forked(parts_of(fns(3), [("sync", 2), ("single", 1)]), 2),
        lambda: forked(fns(3), 2, on_worker_lost="restart"),
        lambda: forked(fns(3, observation_space=Discrete(3, start=1)), 2),
        lambda: forked(fns(3, action_space=Discrete(3, start=1)), 2),
        lambda: Subclass(fns(3), workers=2, start_method="fork"),
    ],
)
def test_next_step_is_refused_where_rows_do_not_step_alone(make: Any) -> None:
    env = make()
    with pytest.raises(sb3compat.AutoresetModeError):
        sb3compat.to_gymnasium(env, autoreset_mode="NextStep")
    sb3compat.to_gymnasium(env).close()


class Subclass(ParallelVecEnv):
    pass


def test_pending_step_and_closed_environment_are_refused() -> None:
    env = forked(fns(3), 2)
    envs = sb3compat.to_gymnasium(env, autoreset_mode="NextStep")
    envs.reset()
    env.step_async(np.zeros(3, int))
    with pytest.raises(sb3compat.errors.CallOrderError):
        envs.step(np.zeros(3, int))
    env.step_wait()
    env.close()
    with pytest.raises(sb3compat.ClosedError):
        envs.reset()


def test_empty_info_of_a_reset_within_a_step_replaces_that_of_the_reset_before() -> None:
    def once(obs: Any, info: Any) -> Any:
        return obs, {"first": True} if info["resets"] == 1 else {}

    env = forked([lambda: Returns(reset=once, lengths=(1,))] * 2, 2)
    env.reset()
    assert env.reset_infos == [{"first": True}] * 2
    env.step([env.action_space.sample()] * 2)
    assert env.reset_infos == [{}, {}]
