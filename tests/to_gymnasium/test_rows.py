"""A plain `DummyVecEnv` or `SubprocVecEnv`, driven row by row."""

from __future__ import annotations

import pickle
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import Returns, fns
from tests.interrupts import attempt
from tests.lockstep import same
from tests.lockstep_back import dummy, subproc
from tests.to_sb3.driving import Gives

pytest.importorskip("stable_baselines3")


MODES = list(AutoresetMode)
NEXT_STEP, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED


@pytest.mark.parametrize("options", [None, {}, {"x": 9}])
def test_seeds_and_options_set_on_the_vec_env_wait_for_the_next_reset(
    envs: Any, options: Any
) -> None:
    envs.vec_env.seed(11)
    envs.vec_env.set_options([{"x": 1}, {"x": 2}])
    infos = envs.reset(options=options)[1]
    assert infos["seed"].tolist() == [11, 12]
    assert infos["option"].tolist() == ([9, 9] if options else [1, 2])
    infos = envs.reset()[1]
    assert infos["seed"].tolist() == [-1, -1]
    assert "option" not in infos


@pytest.mark.parametrize(("mode", "steps"), [("SameStep", 2), ("NextStep", 3)])
@pytest.mark.parametrize("build", [dummy, subproc])
def test_infos_of_resets_within_steps_are_where_sb3_keeps_them(
    build: Any, mode: str, steps: int
) -> None:
    """Also where the rows share one info dict, which the next row overwrites."""
    made = fns(lengths=(3, 2), shared=True)
    envs: Any = sb3compat.to_gymnasium(build(made), autoreset_mode=mode)
    envs.reset()
    assert [info["stamps"][0] for info in envs.vec_env.reset_infos] == [0, 1]
    for _ in range(steps):
        envs.step([0, 0])
    assert [info["resets"] for info in envs.vec_env.reset_infos] == [2, 1]


@pytest.mark.parametrize("end", ["start", "reset", "step"])
@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.parametrize("build", [dummy, subproc])
def test_info_that_is_no_dict_is_refused_wherever_it_comes_from(
    build: Any, mode: str, end: str
) -> None:
    resets = iter([end != "start", end != "reset"])

    def reset(obs: Any, info: Any) -> Any:
        return obs, info if next(resets) else ["no dict"]

    def step(*result: Any) -> Any:
        return *result[:4], ["no dict"] if end == "step" else result[4]

    envs: Any = sb3compat.to_gymnasium(
        build([partial(Returns, reset=reset, step=step, lengths=(1,))]), autoreset_mode=mode
    )
    calls = [envs.reset, *[lambda: envs.step([0])] * 2]
    with pytest.raises(sb3compat.ConversionError, match="infos of sub-environments to be dicts"):
        [call() for call in calls]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [dummy, subproc])
def test_keys_of_sb3_may_be_those_of_sub_environments(build: Any, mode: AutoresetMode) -> None:
    in_step = {"TimeLimit.truncated": 2, "terminal_observation": 8}
    in_reset = {"TimeLimit.truncated": 1, "terminal_observation": 7}
    (single,) = fns(1, lengths=(2,))
    made = [lambda: Gives(single(), step=in_step, reset=in_reset)]
    ours = sb3compat.to_gymnasium(build(made), autoreset_mode=mode)
    theirs = SyncVectorEnv(made, autoreset_mode=mode)
    same(ours.reset(seed=1), theirs.reset(seed=1))
    for _ in range(1 if mode == DISABLED else 5):
        same(ours.step([0])[-1], theirs.step([0])[-1])


FLOATS = spaces.Box(-1, 9, (2,), np.float32)
INTEGERS = spaces.Box(0, 9, (2,), np.int16)
RETURNED = {
    "float64 for float32": (FLOATS, [np.array([1.1, 2]), np.ones(2)]),
    "one row of float64": (FLOATS, [np.ones(2, np.float32), np.array([1.1, 2])]),
    "integers for floats": (FLOATS, [np.array([1, 2]), np.array([3, 4])]),
    "floats for integers": (INTEGERS, [np.ones(2), np.ones(2)]),
    "wider integers": (INTEGERS, [np.array([1, 2]), np.array([3, 4])]),
    "lists": (FLOATS, [[1.1, 2.0], [3.0, 4.0]]),
    "another shape": (FLOATS, [np.ones(3, np.float32), np.ones(3, np.float32)]),
    "several shapes": (FLOATS, [np.ones(2, np.float32), np.ones(1, np.float32)]),
    "an int": (spaces.Discrete(5), [3, 4]),
    "int32": (spaces.Discrete(5), [np.int32(3), np.int32(4)]),
    "one float": (spaces.Discrete(5), [3, 4.5]),
    "parts of a dict": (
        spaces.Dict({"a": FLOATS, "b": spaces.Discrete(5)}),
        [{"a": np.ones(2), "b": 3}, {"b": np.int8(4), "a": np.ones(2), "c": 9}],
    ),
}


@pytest.mark.parametrize("name", RETURNED)
def test_observations_of_other_types_are_batched_as_in_gymnasium(name: str) -> None:
    space, observations = RETURNED[name]

    made = [
        lambda first=first: Returns(reset=lambda *_: (first, {}), observation_space=space)
        for first in observations
    ]

    def outcome(env: Any) -> Any:
        try:
            return env.reset()[0]
        except (TypeError, ValueError) as error:
            return type(error)

    same(outcome(sb3compat.to_gymnasium(dummy(made))), outcome(SyncVectorEnv(made)))


@pytest.mark.parametrize("space", [FLOATS, spaces.Dict({"a": FLOATS, "b": spaces.Discrete(5)})])
@pytest.mark.parametrize("duplicate", [deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copy_shares_nothing_with_the_original(space: Any, duplicate: Any) -> None:
    envs = sb3compat.to_gymnasium(dummy(fns(observation_space=space)), autoreset_mode="Disabled")
    envs.reset(seed=3)
    mask = np.array([True, False])
    other, third = duplicate(envs), duplicate(envs)
    other.step([1, 1])
    # The row that is not reset returns what it has returned last.
    expected = third.reset(options={"reset_mask": mask})
    same(envs.reset(options={"reset_mask": mask}), expected)
    same(envs.step([0, 1]), third.step([0, 1]))


def reads(row: int, steps: int = 99, resets: int = 99) -> Any:
    """Reads its episodes from a file, which has an end: in a step, or in a reset."""
    lines, episodes = iter(range(steps)), iter(range(resets))
    return Returns(
        row,
        step=lambda *result: (next(lines), result)[1],
        reset=lambda *result: (next(episodes), result)[1],
        lengths=(2,),
    )


@pytest.mark.parametrize(("steps", "resets"), [(1, 9), (9, 1)])
@pytest.mark.parametrize("mode", MODES)
def test_stop_iteration_of_an_environment_ends_nothing_else(
    mode: AutoresetMode, steps: int, resets: int
) -> None:
    made = [lambda: reads(0), lambda: reads(1, steps, resets), lambda: reads(2)]
    found: list[list[Any]] = []
    for envs in (
        SyncVectorEnv(made, autoreset_mode=mode),
        sb3compat.to_gymnasium(dummy(made), autoreset_mode=mode),
    ):
        calls = [envs.reset, *[partial(envs.step, [0, 0, 0])] * 2, envs.reset]
        errors = [attempt(call, StopIteration)[1] for call in calls]
        first = next(k for k, error in enumerate(errors) if error is not None)
        found.append([first, type(errors[first])])
    assert found[0] == found[1]
    assert found[0][1] is StopIteration
