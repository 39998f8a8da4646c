"""Any vector environment, driven as a whole through its own step and reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat import to_gymnasium
from tests.envs import Identity, fns
from tests.lockstep import same
from tests.native import NativeEnv, UnknownEnv
from tests.profiles import examples
from tests.to_sb3.driving import (
    DISABLED,
    NEXT_STEP,
    SAME_STEP,
    Changed,
    Passes,
    class_of,
    mode_of,
    recast,
    step,
)


@pytest.mark.parametrize("cls", [UnknownEnv, NativeEnv])
def test_options_that_differ_need_rows_of_their_own(cls: Any) -> None:
    env = sb3compat.to_sb3(cls(fns(2), SAME_STEP))
    env.set_options([{"x": 1, "y": np.arange(2)}, {"x": 1, "y": np.arange(2)}])
    with pytest.raises(sb3compat.PartialResetError, match="same options for all rows"):
        env.set_options([{"x": 1}, {"x": 2}])
    env.reset()  # with what was set before the refusal
    assert [info["option"] for info in env.reset_infos] == [1, 1]


def test_reset_mask_as_an_option_is_refused() -> None:
    env = sb3compat.to_sb3(NativeEnv(fns(2), SAME_STEP))
    with pytest.raises(ValueError, match="reset_mask"):
        env.set_options({"reset_mask": np.array([True, False])})


# What a wrapper makes of a step, and what the message says of that.
RESULTS: dict[str, tuple[Any, str]] = {
    "vector rewards": (
        lambda obs, rewards, *rest: (obs, np.stack([rewards, rewards], axis=1), *rest),
        r"rewards of shape \(3,\).*got.*\(3, 2\)\. .* no vector rewards: scalarise",
    ),
    "a smaller batch": (
        lambda obs, *rest: (obs[:1], *rest), r"shape \(3, 3\).*got shape=\(1, 3\)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_step_of_another_shape_is_refused_until_a_reset(name: str) -> None:
    change, text = RESULTS[name]
    env = sb3compat.to_sb3(Changed(NativeEnv(fns(3, lengths=(1,)), NEXT_STEP), step=change))
    for _ in range(2):
        env.reset()
        with pytest.raises(sb3compat.ConversionError, match=text):
            step(env)
        with pytest.raises(RuntimeError, match=r"Expected reset\(\)"):
            step(env)


@pytest.mark.parametrize("mode", [NEXT_STEP, DISABLED])
def test_ending_reported_in_another_mode_is_refused(mode: AutoresetMode) -> None:
    env = sb3compat.to_sb3(NativeEnv(fns(lengths=(2,)), SAME_STEP), autoreset_mode=mode)
    env.reset()
    step(env)
    with pytest.raises(sb3compat.AutoresetModeError, match="pass autoreset_mode='SameStep'"):
        step(env)


DTYPES: list[Any] = [np.uint8, np.int32, np.int64, np.float32]


@mode_of
@pytest.mark.parametrize("base", ["sync", "adapter"])
@given(
    declared=st.sampled_from(DTYPES),
    given_dtype=st.sampled_from([*DTYPES, np.int16, np.float64]),
    factor=st.sampled_from([1, 1, 0.01, 1000, -1]),
)
@settings(max_examples=examples(200))
def test_observations_of_another_dtype_are_never_cut(
    mode: AutoresetMode, base: str, declared: Any, given_dtype: Any, factor: float
) -> None:
    """They arrive with the values that the wrapper gives, or are refused by its name."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    made = fns(observation_space=spaces.Box(0, 100, (3,), declared), lengths=(2, 3))

    def build() -> Any:
        if base == "sync":
            return SyncVectorEnv(made, autoreset_mode=mode)
        return to_gymnasium(vec_env.DummyVecEnv(made), autoreset_mode=mode)

    whole = np.int64 if np.dtype(given_dtype).kind in "iu" else np.float64  # which wraps around

    def change(array: Any) -> Any:
        return (np.float64(array) * factor).astype(whole).astype(given_dtype)

    theirs = sb3compat.to_sb3(Identity(build()))
    env = sb3compat.to_sb3(recast(build(), change))
    expected = [(theirs.reset(),), *[theirs.step([0, 0]) for _ in range(4)]]
    for turn, result in enumerate(expected):
        values = change(result[0])
        kept = values.astype(declared)
        if declared != np.float32 and (kept.astype(object) != values.astype(object)).any():
            with pytest.raises(sb3compat.ConversionError, match=r"from <Changed, .* cannot hold"):
                env.step([0, 0]) if turn else env.reset()
            return
        got: Any = env.step([0, 0]) if turn else (env.reset(),)
        same(got[0], kept)
        for info, wanted in zip(*(part[3] if turn else [] for part in (got, result)), strict=True):
            if "terminal_observation" in wanted:
                final = change(wanted["terminal_observation"])
                np.testing.assert_allclose(info["terminal_observation"], final, rtol=1e-6)


def test_seeds_that_count_up_reach_a_wrapper_as_one_int() -> None:
    wrapper = Passes(SyncVectorEnv(fns(2)))
    env, plain = sb3compat.to_sb3(wrapper), sb3compat.to_sb3(SyncVectorEnv(fns(2)))
    for seeds, arrived in ((5, 5), (None, int), ([7, 3], [7, 3])):
        for either in (env, plain):
            np.random.seed(0)
            if isinstance(seeds, list):
                either._seeds = seeds
            else:
                either.seed(seeds)
        same(env.reset(), plain.reset())
        assert wrapper.got["seed"] == arrived or type(wrapper.got["seed"]) is arrived


@pytest.mark.parametrize("wrap", [RecordEpisodeStatistics, Identity])
def test_observations_are_copied_once(wrap: Any) -> None:
    """Not where the environment hands out new arrays, and no wrapper may have kept them."""
    source = SyncVectorEnv(fns(2))
    kept: list[Any] = []
    env, deliver = sb3compat.to_sb3(wrap(source)), source.step

    def noted(actions: Any) -> Any:
        kept.append(deliver(actions))
        return kept[-1]

    source.step = noted  # type: ignore[method-assign]
    env.reset()
    assert np.shares_memory(step(env)[0], kept[0][0]) == (wrap is RecordEpisodeStatistics)


def doubled(env: Any, *, in_place: bool) -> Any:
    """The observations are doubled, in the arrays that come from below or in new ones."""

    def double(obs: Any, *rest: Any) -> Any:
        return np.multiply(obs, np.float32(2), out=obs if in_place else None), *rest

    return Changed(env, step=double, reset=double)


@class_of
@pytest.mark.parametrize("copy", [True, False])
def test_wrapper_may_write_into_the_observations_that_it_gets(copy: bool, cls: Any) -> None:
    streams = []
    for in_place in (False, True):
        source = doubled(cls(fns(lengths=(2, 3)), copy=copy), in_place=in_place)
        env = sb3compat.to_sb3(source)
        env.seed(3)
        streams.append([env.reset(), *[step(env) for _ in range(6)]])
        env.close()
    same(streams[1], streams[0])


def test_buffer_of_a_replaced_method_is_copied() -> None:
    source: Any = RecordEpisodeStatistics(SyncVectorEnv(fns(2)))
    buffer, inner = source.reset()[0].copy(), source.step

    def into_the_buffer(actions: Any) -> Any:
        obs, *rest = inner(actions)
        buffer[...] = obs
        return buffer, *rest

    source.step = into_the_buffer
    env = sb3compat.to_sb3(source)
    env.reset()
    assert not np.shares_memory(step(env)[0], buffer)
