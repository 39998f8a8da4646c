"""Every vector wrapper of Gymnasium: exact, or refused with the way out.

Exact means: what `DummyVecEnv` yields with the wrapper's twin for single environments around each
of its sub-environments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sb3compat
from tests.covering import Pair, chosen
from tests.envs import GYMNASIUM, MakeEnv
from tests.lockstep import same
from tests.native import UnknownEnv
from tests.profiles import examples, some
from tests.strategies import programs
from tests.to_sb3.wrapper_twins import (
    MODES,
    OBSERVATIONS,
    SAME_STEP,
    TWINS,
    AnyEnv,
    fitting_space,
    halved,
    in_lockstep,
    mode_of,
    parallel,
    record_video,
    refused_by_gymnasium,
    refused_here,
    scripted,
    sync,
)

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")
pytest.importorskip("pygame", reason="HumanRendering shows its frames with pygame")
pytest.importorskip("cv2", reason="ResizeObservation and HumanRendering need OpenCV")

if GYMNASIUM < (1, 4):
    # A RecordVideo that refuses its environment raises again when it is deleted.
    pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


# With workers and copies it is slowest, and much like the others.
BUILDS = some([(sync, True), (sync, False), (parallel, False), (parallel, True)], 3)


@mode_of
@pytest.mark.parametrize(("build", "copy"), BUILDS)
@pytest.mark.parametrize("name", TWINS)
def test_wrapper_is_exact_or_refused(
    name: str, build: Any, copy: bool, mode: AutoresetMode
) -> None:
    if refused_by_gymnasium(name, mode):
        with pytest.raises((AssertionError, ValueError)):
            in_lockstep((name,), build, mode=mode, copy=copy)
    elif refused_here(name, mode):
        with pytest.raises(sb3compat.UnsupportedEnvError, match="around each sub-environment"):
            in_lockstep((name,), build, mode=mode, copy=copy)
    else:
        in_lockstep((name,), build, mode=mode, copy=copy)


# Refused wrappers, and a part of the message.
REFUSED: dict[str, tuple[Callable[[AnyEnv], AnyEnv], str]] = {
    "DictInfoToList": (lambda env: vector.DictInfoToList(env), "Remove that wrapper"),
    "NormalizeReward": (lambda env: vector.NormalizeReward(env), "VecNormalize"),
    "NormalizeObservation": (lambda env: vector.NormalizeObservation(env), "VecNormalize"),
    "NumpyToTorch": (lambda env: vector.NumpyToTorch(env), "Remove that wrapper"),
    "JaxToNumpy": (lambda env: vector.JaxToNumpy(env), "Remove that wrapper"),
    "JaxToTorch": (lambda env: vector.JaxToTorch(env), "Remove that wrapper"),
    "ArrayConversion": (
        lambda env: vector.ArrayConversion(env, env_xp=np, target_xp=np),
        "Remove that wrapper",
    ),
}
if GYMNASIUM < (1, 2):
    del REFUSED["ArrayConversion"]


def test_every_wrapper_is_tested() -> None:
    assert set(vector.__all__) == TWINS.keys() | REFUSED.keys()


def test_every_wrapper_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "vector-wrappers.md"
    table = "".join(line for line in page.read_text().splitlines() if line.startswith("|"))
    named = {name for name in vector.__all__ if f"`{name}`" in table}
    assert named == set(vector.__all__)


def needs(name: str) -> Any:
    marks = [pytest.mark.jax] if "Jax" in name else []
    return pytest.param(name, marks=marks, id=name)


@mode_of
@pytest.mark.parametrize("name", [needs(name) for name in REFUSED])
def test_refused_wrapper_is_refused_at_every_place(name: str, mode: AutoresetMode) -> None:
    if "Jax" in name:
        pytest.importorskip("jax", reason="the wrapper needs JAX")
    if name == "ArrayConversion" or (name.endswith(("Torch", "Numpy")) and GYMNASIUM >= (1, 2)):
        pytest.importorskip("array_api_compat", reason="the wrapper needs array-api-compat")
    make, way_out = REFUSED[name]
    if name == "NormalizeReward" and mode == SAME_STEP and GYMNASIUM >= (1, 4):
        return  # exact, see below
    fns = [MakeEnv(scripted(OBSERVATIONS[0]), i) for i in range(2)]
    try:
        make(sync(fns, mode))
    except (AssertionError, ValueError):  # Gymnasium refuses it itself
        assert name == "NormalizeObservation"
        assert mode != AutoresetMode.NEXT_STEP
        return
    around: list[Callable[[AnyEnv], AnyEnv]] = [lambda env: env]
    around += [twins.batch for other, twins in TWINS.items() if not refused_here(other, mode)]
    tried = 0
    for wrap in around:
        for inner, outer in ((wrap, make), (make, wrap)):
            try:
                env = outer(inner(sync(fns, mode)))
            except (AssertionError, TypeError, ValueError, AttributeError):  # Gymnasium's own rules
                continue
            with pytest.raises(sb3compat.UnsupportedEnvError, match=f"{name}.*{way_out}"):
                sb3compat.to_sb3(env)
            tried += 1
    assert tried > 10


@pytest.mark.skipif(GYMNASIUM < (1, 4), reason="Gymnasium 1.4 is the first to have it right")
@pytest.mark.parametrize("inner", [name for name in TWINS if not name.endswith("Observation")])
def test_normalize_reward_is_exact_in_same_step_mode(inner: str) -> None:
    fns = [MakeEnv(scripted(OBSERVATIONS[0]), i) for i in range(3)]

    def stack() -> AnyEnv:
        return vector.NormalizeReward(TWINS[inner].batch(sync(fns, SAME_STEP)), gamma=0.5)

    theirs, ours = stack(), sb3compat.to_sb3(stack())
    theirs.reset(seed=1)
    ours.reset()
    theirs.action_space.seed(1)
    for _ in range(12):
        actions = theirs.action_space.sample()
        expected = theirs.step(actions)[1]
        np.testing.assert_array_equal(ours.step(actions)[1], expected.astype(np.float32))


@pytest.mark.parametrize("name", ["NormalizeReward", "NormalizeObservation"])
def test_padding_allows_statistics_wrappers(name: str) -> None:
    def stack() -> AnyEnv:
        fns = [MakeEnv(scripted(OBSERVATIONS[0]), i) for i in range(2)]
        return REFUSED[name][0](UnknownEnv(fns, AutoresetMode.NEXT_STEP))

    theirs, ours = stack(), sb3compat.to_sb3(stack(), padding=True)
    same(ours.reset(), theirs.reset()[0])
    actions = np.zeros((2, 2), np.float32)
    for _ in range(8):
        obs, rewards, dones, _ = ours.step(actions)
        expected, unrounded, *_ = theirs.step(actions)
        same(obs, expected)
        np.testing.assert_array_equal(rewards[~dones], unrounded.astype(np.float32)[~dones])


def test_wrapper_that_assumes_another_mode_is_refused() -> None:
    """The wrapper has read another mode from the metadata when it was made."""
    env = sync([MakeEnv(scripted(OBSERVATIONS[0]), 0)], SAME_STEP)
    metadata, env.metadata = env.metadata, {**env.metadata, "autoreset_mode": MODES[0]}
    wrapped = [
        vector.RescaleObservation(env, np.float32(0), np.float32(1)),
        vector.TransformObservation(env, halved),
    ]
    believing = [vector.RecordEpisodeStatistics(env)]
    if GYMNASIUM >= (1, 2):
        believing.append(record_video(env))
    env.metadata = metadata
    for wrapper in wrapped:
        with pytest.raises(sb3compat.UnsupportedEnvError, match=r"not be transformed.*around each"):
            sb3compat.to_sb3(wrapper)
    for wrapper in believing[GYMNASIUM < (1, 4) :]:
        with pytest.raises(sb3compat.UnsupportedEnvError, match=r"to know that .* SAME_STEP"):
            sb3compat.to_sb3(wrapper)


@pytest.mark.parametrize("name", ["TransformObservation", "DtypeObservation", "ClipReward"])
def test_native_cartpole_works_under_wrappers(name: str) -> None:
    def make() -> AnyEnv:
        return gym.make_vec("CartPole-v1", num_envs=5, vectorization_mode="vector_entry_point")

    def transformed(obs: Any) -> Any:
        if name == "TransformObservation":
            return halved(obs)
        return obs.astype(np.float64) if name == "DtypeObservation" else obs

    plain, ours = sb3compat.to_sb3(make()), sb3compat.to_sb3(TWINS[name].batch(make()))
    for env in (plain, ours):
        env.seed(3)
    same(ours.reset(), transformed(plain.reset()))
    rng = np.random.default_rng(3)
    endings = 0
    for _ in range(60):
        actions = rng.integers(2, size=5)
        obs, rewards, dones, infos = plain.step(actions)
        for info, done in zip(infos, dones, strict=True):
            if done:
                endings += 1
                info["terminal_observation"] = transformed(info["terminal_observation"])
        same(ours.step(actions), (transformed(obs), np.clip(rewards, 0.15, 1), dones, infos))
    assert endings > 5


def allowed(mode: AutoresetMode) -> list[str]:
    """The wrappers that work in this mode."""
    return [
        name for name in TWINS if not (refused_by_gymnasium(name, mode) or refused_here(name, mode))
    ]


@cache
def possible_pairs(mode: AutoresetMode) -> list[Pair]:
    """The inner and the outer wrapper, where Gymnasium itself can run one in the other."""
    names = allowed(mode)
    return [(a, b) for b in names for a in names if fitting_space(a, b) is not None]


@cache
def tried_pairs(mode: AutoresetMode) -> list[Pair]:
    """All of them nightly; else some, others in each mode."""
    return chosen(possible_pairs(mode), seed=MODES.index(mode))


@mode_of
def test_every_wrapper_is_tried_inside_and_outside(mode: AutoresetMode) -> None:
    inner, outer = zip(*tried_pairs(mode), strict=True)
    assert set(inner) == set(outer) == set(allowed(mode))


@mode_of
@pytest.mark.parametrize("outer", TWINS)
def test_pairs_of_wrappers_are_exact(outer: str, mode: AutoresetMode) -> None:
    if outer not in allowed(mode):
        return  # see test_wrapper_is_exact_or_refused
    assert sum(b == outer for _, b in possible_pairs(mode)) > 5
    for names in tried_pairs(mode):
        if names[1] == outer:
            in_lockstep(names, sync, mode=mode)


@mode_of
@given(data=st.data(), n=st.integers(1, 4), copy=st.booleans())
@settings(max_examples=examples(60))
def test_stacks_of_wrappers_are_exact(
    mode: AutoresetMode, data: st.DataObject, n: int, copy: bool
) -> None:
    some_names = st.lists(st.sampled_from(allowed(mode)), min_size=1, max_size=4)
    names = tuple(data.draw(some_names))
    assume(fitting_space(*names) is not None)
    program = data.draw(programs(n, max_size=10))
    in_lockstep(names, sync, n, program=program, mode=mode, copy=copy)
