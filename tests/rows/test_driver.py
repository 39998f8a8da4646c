"""Who else has used an environment: another adapter, or someone directly; in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from sb3compat._rows.driver import Driver
from sb3compat.errors import CallOrderError
from tests.envs import Identity, Returns, fns
from tests.handwritten import CountingVecEnv
from tests.lockstep import same
from tests.lockstep_back import dummy, monitored, subproc
from tests.native import UnknownEnv

sb3: Any = pytest.importorskip("stable_baselines3.common.vec_env")

ACTIONS = np.zeros(2, np.int64)


class OwnDummy(sb3.DummyVecEnv):
    pass


def native(made: Any) -> Any:
    return gym.make_vec("CartPole-v1", num_envs=2)


def same_step(made: Any) -> Any:
    return SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)


# How to build what is adapted, the direction, and whether direct calls leave a mark.
Case = tuple[Callable[[Any], Any], Callable[[Any], Any], bool]
CASES: dict[str, Case] = {
    "dummy": (dummy, sb3compat.to_gymnasium, True),
    "subproc": (subproc, sb3compat.to_gymnasium, True),
    "wrapped dummy": (monitored, sb3compat.to_gymnasium, True),
    "wrapped subproc": (lambda made: sb3.VecMonitor(subproc(made)), sb3compat.to_gymnasium, True),
    "subclass": (OwnDummy, sb3compat.to_gymnasium, True),
    "adapter": (
        lambda made: sb3.VecMonitor(sb3compat.to_sb3(SyncVectorEnv(made))),
        sb3compat.to_gymnasium,
        True,
    ),
    "handwritten": (lambda made: CountingVecEnv(), sb3compat.to_gymnasium, False),
    "sync": (SyncVectorEnv, sb3compat.to_sb3, True),
    "sync in the same step": (same_step, sb3compat.to_sb3, True),
    "wrapped sync": (lambda made: Identity(SyncVectorEnv(made)), sb3compat.to_sb3, True),
    "async": (AsyncVectorEnv, sb3compat.to_sb3, False),
    "wrapped async": (lambda made: Identity(AsyncVectorEnv(made)), sb3compat.to_sb3, False),
    "presented": (
        lambda made: Identity(sb3compat.to_gymnasium(dummy(made))),
        sb3compat.to_sb3,
        True,
    ),
    "native": (native, sb3compat.to_sb3, False),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Any:
    build, adapt, marked = CASES[request.param]
    env = build(fns())
    yield env, adapt, marked
    env.close()


def uses(adapted: Any, adapt: Any) -> list[Callable[[], Any]]:
    """The calls before which all rows have to be reset."""
    mask = {"reset_mask": np.array([True, False])}
    calls = [lambda: adapted.step(ACTIONS), lambda: adapted.reset(options=mask)]
    return calls if adapt is sb3compat.to_gymnasium else calls[:1]


def test_another_adapter_that_has_reset_the_environment_is_noticed(case: Any) -> None:
    env, adapt, _ = case
    first, second = adapt(env), adapt(env)
    first.reset()
    first.step(ACTIONS)
    second.reset()
    with pytest.raises(CallOrderError, match=r"Expected reset\(\).*another adapter has reset"):
        first.step(ACTIONS)
    second.step(ACTIONS)
    first.reset()
    first.step(ACTIONS)
    with pytest.raises(CallOrderError, match="another adapter"):
        second.step(ACTIONS)


@pytest.mark.parametrize("method", ["step", "reset"])
def test_direct_call_is_noticed_where_it_leaves_a_mark(case: Any, method: str) -> None:
    env, adapt, marked = case
    adapted = adapt(env)
    for _ in range(2):
        adapted.reset()
        for _ in range(3):
            adapted.step(ACTIONS)
        # Also where the very same array is passed each time.
        getattr(env, method)(*([ACTIONS] if method == "step" else []))
        if not marked:
            return
        for use in uses(adapted, adapt):
            with pytest.raises(CallOrderError, match=r"Expected reset\(\).*someone has stepped or"):
                use()


@pytest.mark.parametrize("number", [0.5, 1000, np.float32(0.5)], ids=lambda n: type(n).__name__)
def test_pickled_environment_was_not_used_by_others(number: Any) -> None:
    space = gym.spaces.Box(0, 2000, ())
    returned: dict[str, Any] = {
        "step": lambda _, *rest: (number + 1, *rest),
        "reset": lambda _, info: (number + 2, info),
    }
    env = SyncVectorEnv([lambda: Returns(**returned, observation_space=space)] * 2)
    ours = sb3compat.to_sb3(env)
    ours.reset()
    ours.step(ACTIONS)
    copied = cloudpickle.loads(cloudpickle.dumps(ours))
    same(copied.step(ACTIONS), ours.step(ACTIONS))


def test_direct_masked_reset_is_noticed_where_observations_are_numbers() -> None:
    env = SyncVectorEnv([lambda: gym.make("FrozenLake-v1", is_slippery=False)] * 2)
    ours = sb3compat.to_sb3(env)
    ours.reset()
    ours.step(np.array([1, 1]))
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(CallOrderError, match="someone has stepped or reset"):
        ours.step(ACTIONS)


def test_environment_that_was_reset_before_it_was_adapted_has_to_be_reset_again(case: Any) -> None:
    env, adapt, _ = case
    env.reset()
    env.step(ACTIONS)
    for use in uses(adapt(env), adapt):
        for error in (CallOrderError, RuntimeError, ResetNeeded):
            with pytest.raises(error, match=r"Expected reset\(\) before the first step"):
                use()


def test_infos_that_a_vec_env_keeps_stay_as_they_were() -> None:
    env = dummy(fns())
    envs = sb3compat.to_gymnasium(sb3.VecMonitor(env))
    envs.reset()
    envs.step(ACTIONS)
    assert all("TimeLimit.truncated" in info for info in env.buf_infos)


def test_environment_that_takes_no_attribute_is_not_watched() -> None:
    class Slots:
        __slots__ = ()

    driver = Driver(Slots())
    driver.take()
    driver.note()
    driver.check()


class PutsBackItsState(UnknownEnv):
    """Its episodes begin with the state that it had when it was made, or at its first reset."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept = dict(vars(self))

    def step(self, actions: Any) -> Any:
        result = super().step(actions)
        self.__dict__ = {**self.kept, "kept": self.kept}
        return result


class KeepsLater(PutsBackItsState):
    def reset(self, **kwargs: Any) -> Any:
        self.kept = dict(vars(self))
        return super().reset(**kwargs)


class Fields(UnknownEnv):
    """Has the attributes that it names, and no others."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_sb3compat"):
            raise TypeError(f"no field {name!r}")
        super().__setattr__(name, value)


@pytest.mark.parametrize("cls", [PutsBackItsState, KeepsLater, Fields])
def test_environment_with_attributes_of_its_own_making_was_not_used_by_others(cls: Any) -> None:
    env = sb3compat.to_sb3(cls(fns(), AutoresetMode.SAME_STEP))
    for _ in range(2):
        env.reset()
        env.step(ACTIONS)
        env.step(ACTIONS)
    other = sb3compat.to_sb3(env.env)
    other.reset()
    if cls is Fields:
        with pytest.raises(CallOrderError, match="another adapter"):
            env.step(ACTIONS)
