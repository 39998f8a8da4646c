"""`ParallelVecEnv` as users build it: arguments, parts, other people's functions that take it."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import sb3compat
from sb3compat import ParallelVecEnv
from sb3compat._parallel import adapter
from tests.envs import fns
from tests.native import UnknownEnv
from tests.parallel.teams import children, forked, parts_of

make_cartpole = partial(gym.make, "CartPole-v1")


@pytest.mark.parametrize(
    ("kwargs", "what"),
    [
        ({"env_fns": make_cartpole}, r"Expected env_fns to be a list of functions.*\(partial\)"),
        ({"env_fns": make_cartpole()}, r"list of functions.*got env_fns=<.*CartPole"),
        ({"parent_steps": True, "backend": "ray"}, "no parent_steps with backend='ray'"),
        ({"spin_seconds": 1e-5, "backend": "ray"}, "no spin_seconds with backend='ray'"),
        ({"start_method": "fork", "backend": "ray"}, "no start_method with backend='ray'"),
    ],
)
def test_wrong_argument_is_refused(kwargs: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        ParallelVecEnv(**{"env_fns": fns(2), **kwargs})


def test_function_that_cannot_be_pickled_is_named_before_a_process_is_started() -> None:
    held = threading.Lock()
    with pytest.raises(
        sb3compat.UnsupportedEnvError, match=r"env_fns\[2\].*<lambda>.*lock"
    ) as info:
        ParallelVecEnv([*fns(2), lambda: held, *fns(1)], 2)
    assert "start_method='fork'" in str(info.value)
    assert isinstance(info.value.__cause__, TypeError)
    assert not children()


def test_metadata_and_spec_that_cannot_be_pickled_are_left_out() -> None:
    def make() -> Any:
        env: Any = make_cartpole()
        env.unwrapped.metadata = {"render_fps": 50, "held": threading.Lock(), "own": Local()}
        env.unwrapped.spec.kwargs["held"] = threading.Lock()
        return env

    class Local:
        pass

    env = forked([make])
    assert {"render_fps", "own"} <= env.metadata.keys()
    assert "held" not in env.metadata
    assert env.spec is None


def test_rows_are_spread_evenly_in_order_of_parts() -> None:
    env = forked(parts_of(fns(7), [("sync", 2), ("single", 2), ("sync", 3)]), 3)
    assert env.row_of_part == [0, 2, 3, 4]
    assert env.rows_of_worker == [range(3), range(3, 4), range(4, 7)]
    assert env.get_attr("row") == list(range(7))
    assert repr(env) == "<ParallelVecEnv, 7 rows in 3 workers>"


@pytest.mark.parametrize(
    ("cores", "rows", "kwargs", "expected"),
    [
        (3, 5, {}, 3),
        (3, 2, {}, 2),
        (3, 2, {"workers": 9}, 2),
        (3, 4, {"workers": np.int64(1)}, 1),
        # One core is for this process, which has a share as well.
        (3, 8, {"parent_steps": True}, 3),
        (1, 8, {"parent_steps": True}, 2),
    ],
)
def test_there_are_as_many_workers_as_cores_but_no_more_than_parts(
    cores: int, rows: int, kwargs: Any, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "usable_cores", lambda: cores)
    env = forked(iter(fns(rows)), **kwargs)  # type: ignore[arg-type]
    assert len(env.rows_of_worker) == expected


def test_attributes_are_those_of_the_environment() -> None:
    env = forked([partial(gym.make, "CartPole-v1", render_mode="rgb_array")] * 2)
    assert env.spec is not None
    assert env.spec.id == "CartPole-v1"
    assert env.metadata["render_fps"] == 50
    assert env.render_mode == "rgb_array"
    env.reset()
    assert env.render().shape == (800, 600, 3)
    with pytest.raises(AttributeError, match="no sub-environments in this process"):
        _ = env.envs
    assert sb3compat.to_sb3(env) is env


def test_without_copy_observations_are_the_shared_memory() -> None:
    env = forked(fns(3), 2, copy=False)
    first = env.reset()
    second = env.step(np.zeros(3, int))[0]
    assert np.shares_memory(first, second)
    env.close()
    assert second.sum() == second.sum()  # the memory is there as long as the arrays


def test_options_that_a_part_cannot_apply_are_refused_when_they_are_set() -> None:
    env = forked([lambda: UnknownEnv(fns(2), gym.vector.AutoresetMode.SAME_STEP)] * 2, 2)
    with pytest.raises(sb3compat.PartialResetError, match="same options for all rows"):
        env.set_options([{}, {}, {"x": 1}, {}])
    env.set_options([{}, {}, {"x": 1}, {"x": 1}])
    env.reset()


@pytest.mark.parametrize(("place", "returned"), [(0, None), (1, (1, 2)), (2, make_cartpole)])
def test_function_that_makes_no_environment_is_named(place: int, returned: Any) -> None:
    functions: list[Any] = fns(3)
    functions[place] = lambda: returned
    with pytest.raises(sb3compat.UnsupportedEnvError, match=rf"Expected env_fns\[{place}\] to"):
        forked(functions, 2)
