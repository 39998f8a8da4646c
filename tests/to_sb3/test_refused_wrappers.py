"""Which vector wrappers are refused, because rows would be wrong with them, and which are not."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat.errors import PartialResetError, UnsupportedEnvError
from tests.envs import fns
from tests.native import UnknownEnv
from tests.to_sb3.driving import (
    DISABLED,
    MODES,
    NEXT_STEP,
    SAME_STEP,
    Changed,
    Passes,
    class_of,
    mode_of,
    step,
)

ACTIONS = np.zeros(2, np.int64)


def without_options(env: Any) -> Any:
    return Passes(env, lambda options: None)


def without_row_0(env: Any) -> Any:
    """Masks of resets are passed on without row 0."""
    row_1 = [False, True]
    return Passes(env, lambda given: {key: mask & row_1 for key, mask in (given or {}).items()})


def narrows_in_place(env: Any) -> Any:
    def change(given: Any) -> Any:
        for mask in (given or {}).values():
            mask[0] = False
        return given

    return Passes(env, change)


class ResetsAllBefore(VectorWrapper):
    """Begins each reset with a plain one."""

    def reset(self, **kwargs: Any) -> Any:
        self.env.reset()
        return self.env.reset(**kwargs)


def own_reference(env: Any) -> Any:
    """Steps the environment through a reference of its own."""
    wrapper: Any = VectorWrapper(env)
    wrapper.step = env.step
    return wrapper


class ResetsByItself(VectorWrapper):
    """A wrapper that users would write around an environment in DISABLED mode."""

    def step(self, actions: Any) -> Any:
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        if (terminated | truncated).any():
            options = {"reset_mask": terminated | truncated}
            obs, _ = self.env.reset(options=options)
        return obs, rewards, terminated, truncated, infos


class Stack(VectorWrapper):
    """Stacks two frames; its reset starts over in all rows, whatever the mask."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        shape = (2, *env.single_observation_space.shape)
        self.single_observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)

    def reset(self, **kwargs: Any) -> Any:
        obs, infos = self.env.reset(**kwargs)
        self.last = obs.copy()
        return np.stack([obs, obs], axis=1), infos

    def step(self, actions: Any) -> Any:
        obs, *rest = self.env.step(actions)
        frames = np.stack([self.last, obs], axis=1)
        self.last = obs.copy()
        return frames, *rest


class Warms(VectorWrapper):
    """Steps after each reset, as a no-op start does."""

    steps = 1

    def reset(self, **kwargs: Any) -> Any:
        obs, infos = self.env.reset(**kwargs)
        for _ in range(self.steps):
            obs, *_ = self.env.step(ACTIONS)
        return obs, infos


def hides_endings(env: Any) -> Any:
    """Of row 0."""
    return Changed(env, step=lambda *r: (*r[:2], r[2] & [False, True], *r[3:]))


def adds_endings(env: Any) -> Any:
    """Row 1 ends with every step."""
    return Changed(env, step=lambda *r: (*r[:3], r[3] | [False, True], r[4]))


ON_DEMAND = [NEXT_STEP, DISABLED]
# In which modes a wrapper is refused, and how.
REFUSED: dict[str, tuple[Any, list[AutoresetMode], Any, str]] = {
    "drops options": (without_options, ON_DEMAND, PartialResetError, "did not pass it on"),
    "narrows the mask": (
        without_row_0, ON_DEMAND, PartialResetError, r"rows \[0, 1\].*the rows \[1\] were reset"
    ),
    "narrows it in place": (
        narrows_in_place, ON_DEMAND, PartialResetError, r"rows \[0, 1\].*the rows \[1\] were reset"
    ),
    "resets all before": (
        ResetsAllBefore, ON_DEMAND, PartialResetError, r"rows \[0\].*the rows \[0, 1\] were reset"
    ),
    "bypasses the tap": (own_reference, MODES, UnsupportedEnvError, "its own reference"),
    "resets in its step": (
        ResetsByItself, MODES, UnsupportedEnvError, "not to reset.*Remove that wrapper"
    ),
    "resets all of its state": (Stack, ON_DEMAND, PartialResetError, "resets its state for all"),
    "steps after a reset of some rows": (Warms, ON_DEMAND, PartialResetError, "to step no row"),
    "leaves the last observations": (
        Stack, [SAME_STEP], sb3compat.ConversionError, r"last observation .* shape \(2, 3\)"
    ),
    "hides endings": (hides_endings, MODES, UnsupportedEnvError, "End episodes in wrappers around"),
    "adds endings": (
        adds_endings, [SAME_STEP], UnsupportedEnvError, "End episodes in wrappers around"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrapper", [Stack, Warms])
@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make_vec("CartPole-v1", num_envs=2),
        lambda: UnknownEnv(fns(lengths=(2, 3)), DISABLED),
    ],
    ids=["native CartPole", "honours the mask"],
)
def test_wrapper_that_treats_a_reset_as_one_of_all_rows_is_refused_around_any_environment(
    make: Any, wrapper: Any
) -> None:
    env = sb3compat.to_sb3(wrapper(make()))
    env.seed(1)
    env.reset()
    with pytest.raises(PartialResetError, match=r"resets its state|to step no row"):  # noqa: PT012
        for turn in range(20):
            env.step(np.array([0, turn % 2]))  # so that row 0 falls first


@pytest.mark.parametrize("mode", ON_DEMAND)
def test_wrapper_may_step_where_all_rows_end_at_once(mode: AutoresetMode) -> None:
    env = sb3compat.to_sb3(Warms(SyncVectorEnv(fns(lengths=(3,)), autoreset_mode=mode)))
    env.reset()
    assert [step(env)[2].tolist() for _ in range(4)] == [[False] * 2, [True] * 2] * 2


@mode_of
@class_of
def test_wrapper_may_step_in_a_reset_of_all_rows_unless_an_episode_ends(
    cls: Any, mode: AutoresetMode
) -> None:
    source = Warms(cls(fns(lengths=(3, 4)), autoreset_mode=mode))
    env = sb3compat.to_sb3(source)
    env.reset()
    source.steps = 3
    if mode == SAME_STEP:
        env.reset()
        assert step(env)[2].tolist() == [False, True]
    else:
        with pytest.raises(UnsupportedEnvError, match=r"rows \[0\] have ended"):
            env.reset()
    env.close()


@class_of
@mode_of
@pytest.mark.parametrize("name", REFUSED)
def test_wrapper_with_which_rows_would_be_wrong_is_refused(
    name: str, mode: AutoresetMode, cls: Any
) -> None:
    """In the step that ends an episode, at the latest."""
    wrapper, modes, error, text = REFUSED[name]
    if mode not in modes:
        return
    lengths = (2,) if name.startswith(("hides endings", "narrows")) else (2, 3)
    env = sb3compat.to_sb3(wrapper(cls(fns(lengths=lengths), autoreset_mode=mode)))
    env.reset()
    with pytest.raises(error, match=text):
        list(map(step, [env] * 2))
    env.close()


@pytest.mark.parametrize("mode", ON_DEMAND)
def test_wrapper_may_end_episodes_where_rows_are_reset_on_demand(mode: AutoresetMode) -> None:
    env = sb3compat.to_sb3(adds_endings(SyncVectorEnv(fns(lengths=(2,)), autoreset_mode=mode)))
    env.reset()
    for _ in range(4):
        _, _, dones, infos = step(env)
        assert dones[1]
        assert infos[1]["shared"] == 1
