"""What the tap below the wrappers hands on, and what it notes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from hypothesis import given
from hypothesis import strategies as st

import sb3compat
from sb3compat._to_sb3.tap import Tap
from sb3compat.errors import UnsupportedEnvError
from tests.envs import GYMNASIUM, Identity, MakeEnv, fns, script
from tests.lockstep import same
from tests.native import UnknownEnv
from tests.to_sb3.driving import (
    DISABLED,
    SAME_STEP,
    Changed,
    Passes,
    mode_of,
    step,
)

ACTIONS = np.zeros(2, np.int64)


def test_environment_read_from_its_wrapper_is_the_environment_itself() -> None:
    source = SyncVectorEnv(fns(2))
    wrapper = Identity(source)
    sb3compat.to_sb3(wrapper)
    ours: Any = sb3compat.to_sb3(wrapper.env)
    assert ours.env is source


def test_after_a_reset_that_raised_the_users_own_resets_go_straight_to_the_environment() -> None:
    source = Passes(SyncVectorEnv(fns(2)), lambda options: 1 / 0)
    env = sb3compat.to_sb3(source)
    with pytest.raises(ZeroDivisionError):
        env.reset()
    source.change = lambda options: options
    assert source.reset(options={"x": 1})[1]["option"].tolist() == [1, 1]
    assert vars(source.env)["_sb3compat_within"] is None


def test_call_of_the_adapter_by_a_wrapper_does_not_end_the_call_around_it() -> None:
    source = Passes(SyncVectorEnv(fns(2)))
    env = sb3compat.to_sb3(source)
    source.change = lambda options: (env.get_images(), options)[1]
    env.set_options([{"x": 1}, {"x": 2}])
    env.reset()
    assert [info["option"] for info in env.reset_infos] == [1, 2]


def test_two_adapters_over_one_environment_share_the_tap() -> None:
    source = VectorWrapper(SyncVectorEnv(fns(2, lengths=(2, 3))))
    first, plain = sb3compat.to_sb3(source), sb3compat.to_sb3(SyncVectorEnv(fns(2, lengths=(2, 3))))
    tap = source.env
    second = sb3compat.to_sb3(source)
    assert isinstance(tap, Tap)
    assert source.env is tap
    for env in (first, second, first):
        for either in (env, plain):
            either.seed(3)
        same(env.reset(), plain.reset())
        for _ in range(4):
            same(step(env), step(plain))
    del first, second, env
    assert not source.closed


def test_calls_of_the_user_pass_the_tap_unchanged() -> None:
    wrapped, plain = (Identity(SyncVectorEnv(fns(2))) for _ in range(2))
    sb3compat.to_sb3(wrapped)
    mask = np.array([True, False])
    for kwargs in ({"seed": 3}, {"seed": [4, 5], "options": {"x": 2}}, {}):
        same(wrapped.reset(**kwargs), plain.reset(**kwargs))
        same(wrapped.step(ACTIONS), plain.step(ACTIONS))
    for seed in (None, 7):
        masked = {"reset_mask": mask, "x": 1}
        same(
            wrapped.reset(seed=seed, options=dict(masked)),
            plain.reset(seed=seed, options=dict(masked)),
        )
    # Gymnasium's own check; an assertion before 1.4.
    kind = ValueError if GYMNASIUM >= (1, 4) else AssertionError
    with pytest.raises(kind, match="reset_mask"):
        wrapped.reset(options={"reset_mask": np.array([False, False])})


def test_reset_infos_that_rows_share_are_read_row_by_row() -> None:
    """Also under a vector wrapper, where Gymnasium's batching reads them."""
    env = Identity(SyncVectorEnv([MakeEnv(script(shared=True), i) for i in range(3)]))
    adapted = sb3compat.to_sb3(env)
    adapted.reset()
    assert [info["stamps"][0] for info in adapted.reset_infos] == [0, 1, 2]
    assert [info["deeper"]["stamps"][0] for info in adapted.reset_infos] == [0, 1, 2]


def test_options_of_a_reset_arrive_unless_a_wrapper_consumes_them() -> None:
    source = Passes(SyncVectorEnv(fns()), lambda options: None)
    env = sb3compat.to_sb3(source)
    for options, arrived in (([{"x": 1}, {"x": 2}], [1, 2]), ({"x": 3}, [3, 3]), ({}, [None] * 2)):
        env.set_options(options)
        env.reset()
        assert source.got["options"] == (options if options == {"x": 3} else None)
        assert [info.get("option") for info in env.reset_infos] == arrived
    source.change = lambda options: {}
    env.set_options({"x": 1})
    env.reset()
    assert not any("option" in info for info in env.reset_infos)


@mode_of
def test_options_that_a_wrapper_changes_arrive_as_in_gymnasium(mode: AutoresetMode) -> None:
    def made() -> Any:
        source = SyncVectorEnv(fns(), autoreset_mode=mode)
        return Passes(source, lambda options: {**(options or {}), "x": 5, "more": 1})

    env, plain = sb3compat.to_sb3(made()), made()
    for options in ({}, {"x": 1}, {"y": 2}):
        env.set_options(options)
        env.reset()
        _, infos = plain.reset(options=options)
        assert [info["option"] for info in env.reset_infos] == infos["option"].tolist() == [5, 5]
    env.set_options([{"x": 1}, {"x": 2}])
    with pytest.raises(UnsupportedEnvError, match=r"differ by row.*\n?.*Set one dict for all rows"):
        env.reset()


def test_attributes_of_the_environment_are_those_without_the_tap() -> None:
    source: Any = Identity(SyncVectorEnv(fns()))
    inner = source.unwrapped
    # Names that a wrapper in between could have as well.
    inner.steps = inner.resets = inner.mask = inner.scale = inner._own = 1
    inner.env = "a simulator"
    sb3compat.to_sb3(source)
    assert isinstance(source.env, Tap)
    assert isinstance(source.env, SyncVectorEnv)
    assert (source.env.steps, source.env.mask, source.env._own) == (1, 1, 1)
    assert source.env.env == "a simulator"
    assert not hasattr(source.env, "begin")
    source.env.scale = 10
    assert inner.scale == 10
    del source.env.resets
    assert not hasattr(inner, "resets")


@mode_of
def test_methods_that_a_wrapper_replaces_are_called(mode: AutoresetMode) -> None:
    """It puts functions in the place of methods of the environment directly below, for a while."""
    wrapper = Identity(SyncVectorEnv(fns(2, lengths=(2, 3)), autoreset_mode=mode))
    env = sb3compat.to_sb3(wrapper)
    plain = sb3compat.to_sb3(SyncVectorEnv(fns(2, lengths=(2, 3))))
    calls: list[str] = []

    def watched(name: str, method: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return method(*args, **kwargs)

        return call

    for name in ("reset", "step", "close"):
        setattr(wrapper.env, name, watched(name, getattr(wrapper.env, name)))
    for either in (env, plain):
        either.seed(0)
    same(env.reset(), plain.reset())
    same(step(env), step(plain))
    assert calls == ["reset", "step"]
    for name in ("reset", "step"):
        delattr(wrapper.env, name)
    for _ in range(3):
        same(step(env), step(plain))
    env.close()
    assert calls == ["reset", "step", "close"]
    assert wrapper.unwrapped.closed


def flagging(hides: bool, in_place: bool) -> Any:
    """Hides truncations, or ends row 1, in the array that it gets or in a new one."""

    def step(obs: Any, rewards: Any, terminations: Any, truncations: Any, infos: Any) -> Any:
        flags = truncations & False if hides else truncations | [False, True]
        if in_place:
            truncations[:] = flags
            flags = truncations
        return obs, rewards, terminations, flags, infos

    return step


@pytest.mark.parametrize("hides", [True, False])
@mode_of
def test_flags_may_be_changed_in_place(mode: AutoresetMode, hides: bool) -> None:
    """What the environment has ended is known from copies: the two wrappers act alike."""
    seen: list[list[Any]] = []
    for in_place in (True, False):
        source = SyncVectorEnv(fns(2, lengths=(3, 9), endings=("truncated",)), autoreset_mode=mode)
        env = sb3compat.to_sb3(Changed(source, step=flagging(hides, in_place)))
        env.reset()
        seen.append([])
        try:
            seen[-1].extend(step(env) for _ in range(6))
        except UnsupportedEnvError as error:
            seen[-1].append(str(error))
    same(*seen)
    assert isinstance(seen[0][-1], str) == (hides or mode == SAME_STEP)


class Logs(gym.Env[Any, Any]):
    """Keeps what its resets get; an observation is their number, and the time."""

    observation_space = gym.spaces.Box(0, 999, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int) -> None:
        self.length, self.log = length, []

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.log.append((seed, options or None))
        self.time = 0
        return np.array([len(self.log), 0], np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        obs = np.array([len(self.log), self.time], np.float32)
        return obs, 1.0, self.time == self.length, False, {}


class ResetsAgain(VectorWrapper):
    """Resets what it is to reset once more, at once or row by row, with seeds and options."""

    def __init__(self, env: Any, resets: Any) -> None:
        super().__init__(env)
        self.resets = resets

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        options = dict(options or {})
        mask = options.get("reset_mask", np.ones(self.num_envs, np.bool_))
        result = self.env.reset(seed=seed, options=dict(options))
        for by_row, seeds, own in self.resets:
            every = [np.arange(self.num_envs) == row for row in np.flatnonzero(mask)]
            for each in every if by_row else [mask]:
                result = self.env.reset(seed=seeds, options={**options, **own, "reset_mask": each})
        return result


RESETS = st.tuples(
    st.booleans(), st.sampled_from([None, 5, [7, 8, 9]]), st.sampled_from([{}, {"x": 1}])
)


@given(st.lists(RESETS, max_size=3), st.tuples(*[st.integers(1, 3)] * 3))
@mode_of
def test_what_a_wrapper_adds_to_a_reset_arrives_as_in_gymnasium(
    mode: AutoresetMode, resets: Any, lengths: Any
) -> None:
    def made(own: AutoresetMode) -> Any:
        rows = [lambda length=length: Logs(length) for length in lengths]
        return ResetsAgain(SyncVectorEnv(rows, autoreset_mode=own), resets)

    # Who resets rows itself resets those that have ended, as the adapter does within the step.
    env, plain = sb3compat.to_sb3(made(mode)), made(SAME_STEP if mode == SAME_STEP else DISABLED)
    for _ in range(2):
        env.seed(3)
        env.set_options({"y": 2})
        same(env.reset(), plain.reset(seed=3, options={"y": 2})[0])
        for _ in range(4):
            obs, _, ended, *_ = plain.step(np.zeros(3, int))
            if ended.any() and mode != SAME_STEP:
                obs[ended] = plain.reset(options={"reset_mask": ended})[0][ended]
            same(step(env)[0], obs)
    same(env.get_attr("log"), list(plain.env.get_attr("log")))


class Stagger(VectorWrapper):
    """Row 1 is reset once more."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        result = self.env.reset(seed=seed, options=options)
        if "reset_mask" in (options or {}):
            return result
        return self.env.reset(seed=9, options={"reset_mask": np.array([False, True])})


@pytest.mark.parametrize("mode", [SAME_STEP, DISABLED])
def test_masked_reset_of_a_wrapper_is_that_of_the_environment(mode: AutoresetMode) -> None:
    source, plain = (Stagger(UnknownEnv(fns(lengths=(3, 4)), mode)) for _ in range(2))
    env = sb3compat.to_sb3(source)
    for _ in range(2):
        same(env.reset(), plain.reset()[0])
        same(step(env)[0], plain.step(ACTIONS)[0])


def test_function_that_takes_rows_only_is_given_no_options() -> None:
    class Registered(UnknownEnv): ...

    sb3compat.register_partial_reset(Registered, lambda env, mask: env.reset_rows(mask, None, None))
    level = {"level": 7}
    source = Registered(fns(lengths=(2,)), AutoresetMode.NEXT_STEP)
    env = sb3compat.to_sb3(Passes(source, lambda options: {**(options or {}), **level}))
    env.reset()
    step(env)
    with pytest.raises(
        sb3compat.PartialResetError, match=r"mask'\] alone, .* \{'level': 7\} from a"
    ):
        step(env)


def test_nested_options_may_be_changed_in_place() -> None:
    def deeper(options: Any) -> Any:
        options["x"][0] += 1
        return options

    for given_options in ({"x": [0]}, [{"x": [0]}, {"x": [0]}]):
        env = sb3compat.to_sb3(Passes(SyncVectorEnv(fns()), deeper))
        env.set_options(given_options)
        env.reset()
        assert [info["option"] for info in env.reset_infos] == [[1], [1]]


def test_reset_by_a_reference_of_its_own_loses_no_options_that_differ_by_row() -> None:
    source = SyncVectorEnv(fns(), autoreset_mode=SAME_STEP)
    wrapper = Identity(source)
    env = sb3compat.to_sb3(wrapper)
    wrapper.reset = source.reset  # type: ignore[method-assign]
    env.set_options({"x": 5})
    env.reset()
    assert [info["option"] for info in env.reset_infos] == [5, 5]
    env.set_options([{"x": 1}, {"x": 2}])
    with pytest.raises(UnsupportedEnvError, match="differ by row, but it has not: a wrapper keeps"):
        env.reset()


class Scenes(UnknownEnv):
    """Takes more than other environments."""

    def reset(self, seed: Any = None, options: Any = None, **more: Any) -> Any:  # type: ignore[override]
        obs, infos = super().reset(seed=seed, options=options)
        return obs, {**infos, "scene": np.array([more.get("scene", "flat")] * self.num_envs)}

    def step(self, actions: Any, dt: float = 0.5) -> Any:
        *result, infos = super().step(actions)
        return *result, {**infos, "dt": np.array([dt] * self.num_envs)}


class Hills(VectorWrapper):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.env.reset(seed, options, scene="hills")  # type: ignore[misc, call-arg]

    def step(self, actions: Any) -> Any:
        return self.env.step(actions, 0.1)  # type: ignore[call-arg]


def test_arguments_that_only_the_environment_takes_arrive() -> None:
    wrapped, plain = (Hills(Scenes(fns(), DISABLED)) for _ in range(2))
    env = sb3compat.to_sb3(wrapped)
    env.reset()
    assert [info["scene"] for info in env.reset_infos] == ["hills"] * 2
    assert [info["dt"] for info in step(env)[3]] == [0.1] * 2
    plain.reset()
    plain.step(ACTIONS)
    same(wrapped.reset(seed=3), plain.reset(seed=3))
    same(wrapped.step(ACTIONS), plain.step(ACTIONS))


@pytest.mark.parametrize("mask", [np.array([1]), np.array([1, 0]), np.array([False, False])])
def test_mask_of_a_wrapper_that_is_none_is_refused_as_by_gymnasium(mask: Any) -> None:
    source = Passes(SyncVectorEnv(fns()), lambda options: {"reset_mask": mask})
    with pytest.raises((ValueError, TypeError, AssertionError)):
        source.reset()
    with pytest.raises(sb3compat.PartialResetError, match=r"shape \(2,\) with at least one True"):
        sb3compat.to_sb3(source).reset()


def test_arguments_of_a_reset_without_names_are_refused() -> None:
    class ByPlace(Scenes):
        def reset(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
            return super().reset(*args, **kwargs)

    with pytest.raises(TypeError, match="Let the wrapper pass them by name"):
        sb3compat.to_sb3(Hills(ByPlace(fns(), DISABLED))).reset()
