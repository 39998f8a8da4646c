"""What the functions of a worker may make."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat._parallel.parts import Parts
from sb3compat._to_sb3 import partial_reset
from tests.envs import MakeEnv, Returns, fns, script
from tests.lockstep import same
from tests.lockstep_back import dummy
from tests.native import UnknownEnv
from tests.parallel.known import Odd
from tests.parallel.teams import forked
from tests.to_sb3.backends.libraries import pool


def made(*env_fns: Any) -> Parts:
    result = Parts()
    result.make(env_fns, 4, lambda number: None)
    return result


def test_environment_that_is_made_twice_is_refused() -> None:
    env = MakeEnv(script(), 0)()
    with pytest.raises(sb3compat.UnsupportedEnvError, match=r"env_fns\[5\] to make a new"):
        made(lambda: env, lambda: gym.Wrapper(env))


def test_partial_reset_that_the_program_has_registered_is_known_to_its_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partial_reset, "_REGISTRY", dict(partial_reset._REGISTRY))
    sb3compat.register_partial_reset(UnknownEnv, lambda env, mask: env.reset_rows(mask, None, {}))
    part = partial(UnknownEnv, fns(2, lengths=(2, 3)), AutoresetMode.NEXT_STEP)
    envs = [sb3compat.ParallelVecEnv([part], workers=1), sb3compat.to_sb3(part())]
    for env in envs:
        env.seed(3)
    same(*(env.reset() for env in envs))
    for _ in range(5):
        same(*(env.step(np.zeros(2, int)) for env in envs))
    envs[0].close()


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(
    "other", [{"observation_space": Box(-1, 1, (4,))}, {"action_space": Discrete(4, start=1)}]
)
def test_parts_with_other_spaces_are_refused_as_sync_vector_env_does(
    workers: int, other: dict[str, Any]
) -> None:
    functions = [*fns(3), MakeEnv(script(**other), 3)]
    with pytest.raises((RuntimeError, AssertionError)):  # the latter before Gymnasium 1.4
        SyncVectorEnv(functions)
    # The last of two functions in a worker is compared with the other one, not with the first.
    names = rf"env_fns\[{2 if workers == 2 else 0}\] and .*env_fns\[3\]"
    with pytest.raises(RuntimeError, match=f"same {next(iter(other))}.*{names}") as caught:
        forked(functions, workers)
    assert isinstance(caught.value, sb3compat.UnsupportedSpaceError)


@pytest.mark.parametrize("what", ["observation_space", "action_space"])
@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Box(0, 1, (3,)), Box(-5, 5, (3,))),
        (Discrete(4), Discrete(9)),
        (MultiDiscrete([2, 3]), MultiDiscrete([4, 5])),
        (Dict(a=Box(0, 1, (3,)), b=Discrete(2)), Dict(a=Box(0, 9, (3,)), b=Discrete(3))),
        (Tuple([Discrete(2)]), Tuple([Discrete(3)])),
    ],
)
def test_bounds_of_parts_may_differ_as_in_dummy_vec_env(one: Any, two: Any, what: str) -> None:
    functions = [MakeEnv(script(**{what: space}), i) for i, space in enumerate((one, two, two))]
    env = forked(functions, 2)
    assert getattr(env, what) == one
    env.reset()
    env.step([env.action_space.sample() for _ in range(3)])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Box(0, 1, (3,)), Box(0, 1, (3,), np.float64)),
        (Discrete(4), Box(0, 3, (), np.int64)),
        (MultiBinary(2), Box(0, 1, (2,), np.int8)),
        (Dict(a=Discrete(2)), Dict(b=Discrete(2))),
        (
            Dict(a=Discrete(2), b=MultiBinary(2)),
            Dict([("b", Discrete(2)), ("a", MultiBinary(2))]),
        ),
        # Equal for Gymnasium, but laid out in another order.
        (Dict(a=Discrete(2), b=Discrete(2)), Dict([("b", Discrete(2)), ("a", Discrete(2))])),
        (Dict(a=Discrete(2)), Tuple([Discrete(2)])),
        (Tuple([Discrete(2)]), Tuple([Discrete(2), Discrete(2)])),
        (Tuple([Discrete(4)]), Tuple([Box(0, 3, (), np.int64)])),
        (MultiDiscrete([2, 3]), MultiDiscrete([2, 3], start=[0, 1])),
    ],
)
def test_spaces_that_do_not_fit_into_one_batch_are_refused(one: Any, two: Any) -> None:
    functions = [MakeEnv(script(observation_space=space), 0) for space in (one, two)]
    with pytest.raises(
        sb3compat.UnsupportedSpaceError, match=r"same observation_space.*env_fns\[5"
    ):
        made(*functions)


def test_space_that_sb3_cannot_batch_is_refused() -> None:
    with pytest.raises(sb3compat.UnsupportedSpaceError, match="Text"):
        forked(fns(2, observation_space=Text(3)), 2)


def test_vector_environment_that_cannot_be_adapted_is_refused_in_the_worker() -> None:
    with pytest.raises(sb3compat.AutoresetModeError) as caught:
        forked([lambda: UnknownEnv(fns(2), mode=None)])
    assert "in the worker of env_fns[0]:" in str(caught.value.__cause__)


def test_largest_seed_is_that_of_an_environment_around_a_simulator() -> None:
    """Whose innermost object, by `unwrapped`, is the simulator."""

    class AroundASimulator(UnknownEnv):
        unwrapped = property(lambda self: object())

    class Reset:
        largest_seed = 100

        def __call__(self, env: AroundASimulator, mask: Any) -> Any:
            return env.reset_rows(mask, None, None)

    sb3compat.register_partial_reset(AroundASimulator, Reset())
    parts = made(lambda: VectorWrapper(AroundASimulator(fns(2), AutoresetMode.SAME_STEP)))
    assert parts.largest_seed == 100


@pytest.mark.parametrize("said", [None, (), [1]])
def test_reset_infos_that_are_no_dicts_arrive_as_from_dummy_vec_env(said: Any) -> None:
    made = [lambda: Returns(reset=lambda obs, _: (obs, said), lengths=(1,))] * 2
    for env in (dummy(made), forked(made, 1)):
        env.reset()
        assert env.reset_infos == [said] * 2
        assert env.step([env.action_space.sample()] * 2)[2].all()
        assert env.reset_infos == [said] * 2


def test_part_from_to_gymnasium_is_the_vec_env_inside() -> None:
    pytest.importorskip("stable_baselines3", reason="the VecEnv inside is SB3's")
    # The second key stands for a mask in Gymnasium's infos.
    made = [lambda: Returns(step=lambda *result: (*result[:4], {"a": 1, "_a": 2}))] * 2
    env = forked([lambda: sb3compat.to_gymnasium(dummy(made))], 1)
    env.reset()
    infos = env.step([env.action_space.sample()] * 2)[3]
    assert all((info["a"], info["_a"]) == (1, 2) for info in infos)


def test_spec_that_only_workers_can_load_is_none() -> None:
    def make() -> Any:
        env = gym.make("CartPole-v1")
        env.unwrapped.spec = EnvSpec("Simulator-v0", kwargs={"where": Odd()})
        return env.unwrapped

    vec_env = forked([make])
    assert vec_env.spec is None
    assert sb3compat.to_gymnasium(vec_env).spec is None


def test_pool_of_envpool_is_a_part_of_several_rows() -> None:
    """Its class is a `VectorEnv` and a `gym.Env`."""
    pytest.importorskip("envpool", reason="drives EnvPool")
    env = forked([partial(pool, 2, 5, seed) for seed in (1, 2)], 2)
    alike = [sb3compat.to_sb3(pool(2, 5, seed)) for seed in (1, 2)]
    assert env.num_envs == 4
    same(env.reset(), np.concatenate([each.reset() for each in alike]))
    for _ in range(8):
        obs, rewards, dones, infos = env.step(np.zeros(4, np.int32))
        halves = [each.step(np.zeros(2, np.int32)) for each in alike]
        for got, parts in zip((obs, rewards, dones), zip(*halves, strict=True), strict=False):
            same(got, np.concatenate(parts))
        same(infos, [info for half in halves for info in half[3]])


class Cyclic(UnknownEnv):
    """Holds a task that refers back to it."""

    def __init__(self) -> None:
        super().__init__(fns(2), AutoresetMode.SAME_STEP)
        self.env = SimpleNamespace(env=self)


def test_name_of_a_part_is_that_of_its_classes() -> None:
    parts = made(lambda: VectorWrapper(Cyclic()))
    assert parts._parts[0].name == "VectorWrapper(Cyclic)"
