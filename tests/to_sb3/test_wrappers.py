"""Every vector wrapper of Gymnasium: exact, or refused with an alternative.

Exact means: what `DummyVecEnv` yields with the wrapper's twin for single environments around each
of its sub-environments.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sb3compat
from tests.envs import GYMNASIUM, MakeEnv, Script, script
from tests.lockstep import Build, Operation, lockstep, same
from tests.native import NativeEnv, UnknownEnv
from tests.profiles import examples
from tests.strategies import programs
from tests.to_sb3.driving import NEXT_STEP, SAME_STEP, made, mode_of, uniform

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")
pytest.importorskip("pygame", reason="HumanRendering shows its frames with pygame")
pytest.importorskip("cv2", reason="ResizeObservation and HumanRendering need OpenCV")

if GYMNASIUM < (1, 4):
    # A RecordVideo that refuses its environment raises again when it is deleted.
    pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
OBSERVATIONS: tuple[spaces.Space[Any], ...] = (
    spaces.Box(-1, 1, (2, 3), np.float32),
    spaces.Box(0, 255, (8, 8, 3), np.uint8),
    spaces.Dict({"a": spaces.Box(-1, 1, (2,), np.float32), "b": spaces.Box(0, 9, (1,), np.int32)}),
)
AnyEnv = Any


class Twins(NamedTuple):
    """A vector wrapper, and the wrapper that does the same to each sub-environment."""

    batch: Callable[[AnyEnv], AnyEnv]
    single: Callable[[AnyEnv], AnyEnv]


def halved(value: Any) -> Any:
    return value * np.float32(0.5) if getattr(value, "dtype", None) != np.uint8 else value // 2


def half_reward(reward: Any) -> Any:
    return reward * 0.5


def half_observations(env: AnyEnv) -> AnyEnv:
    return wrappers.TransformObservation(env, halved, env.observation_space)


def half_actions(env: AnyEnv) -> AnyEnv:
    return wrappers.TransformAction(env, halved, env.action_space)


def both(name: str, **kwargs: Any) -> Twins:
    return Twins(
        lambda env: getattr(vector, name)(env, **kwargs),
        lambda env: getattr(wrappers, name)(env, **kwargs),
    )


def stats_key(env: AnyEnv) -> str:
    return "outer" if "RecordEpisodeStatistics" in repr(env) else "episode"


FOLDER = tempfile.TemporaryDirectory()  # RecordVideo makes it, whether it records or not


def record_video(env: AnyEnv) -> AnyEnv:
    return vector.RecordVideo(env, FOLDER.name, episode_trigger=lambda _: False)


TWINS: dict[str, Twins] = {
    "TransformObservation": Twins(
        lambda env: vector.TransformObservation(
            env, halved, single_observation_space=env.single_observation_space
        ),
        half_observations,
    ),
    "VectorizeTransformObservation": Twins(
        lambda env: vector.VectorizeTransformObservation(
            env,
            wrappers.TransformObservation,
            func=halved,
            observation_space=env.single_observation_space,
        ),
        half_observations,
    ),
    "FilterObservation": both("FilterObservation", filter_keys=["a"]),
    "FlattenObservation": both("FlattenObservation"),
    "GrayscaleObservation": both("GrayscaleObservation"),
    "ResizeObservation": both("ResizeObservation", shape=(4, 4)),
    "ReshapeObservation": Twins(
        lambda env: vector.ReshapeObservation(
            env, (env.single_observation_space.shape or (0,))[::-1]
        ),
        lambda env: wrappers.ReshapeObservation(env, (env.observation_space.shape or (0,))[::-1]),
    ),
    "RescaleObservation": both("RescaleObservation", min_obs=np.float32(0), max_obs=np.float32(3)),
    "DtypeObservation": both("DtypeObservation", dtype=np.float64),
    "TransformAction": Twins(
        lambda env: vector.TransformAction(
            env, halved, single_action_space=env.single_action_space
        ),
        half_actions,
    ),
    "VectorizeTransformAction": Twins(
        lambda env: vector.VectorizeTransformAction(
            env, wrappers.TransformAction, func=halved, action_space=env.single_action_space
        ),
        half_actions,
    ),
    "ClipAction": both("ClipAction"),
    "RescaleAction": both("RescaleAction", min_action=np.float32(-3), max_action=np.float32(3)),
    "TransformReward": both("TransformReward", func=half_reward),
    "VectorizeTransformReward": Twins(
        lambda env: vector.VectorizeTransformReward(
            env, wrappers.TransformReward, func=half_reward
        ),
        lambda env: wrappers.TransformReward(env, half_reward),
    ),
    "ClipReward": both("ClipReward", min_reward=0.15, max_reward=1.0),
    "RecordEpisodeStatistics": Twins(
        lambda env: vector.RecordEpisodeStatistics(env, stats_key=stats_key(env)),
        lambda env: wrappers.RecordEpisodeStatistics(env, stats_key=stats_key(env)),
    ),
    "RecordVideo": Twins(record_video, lambda env: env),
    "HumanRendering": Twins(lambda env: vector.HumanRendering(env), lambda env: env),
}
if GYMNASIUM < (1, 2):
    del TWINS["RecordVideo"]  # which has been there since
SHOWING = ("RecordVideo", "HumanRendering")


class FastEnv(MakeEnv):
    """Shown as fast as possible: HumanRendering waits according to `render_fps`."""

    def __call__(self) -> gym.Env[Any, Any]:
        env = super().__call__()
        env.unwrapped.metadata = {**env.unwrapped.metadata, "render_fps": 100_000}
        return env


def scripted(space: spaces.Space[Any] = OBSERVATIONS[0]) -> Script:
    return script(
        observation_space=space,
        action_space=ACTIONS,
        lengths=(2, 3, 1),
        endings=("truncated", "both", "terminated"),
    )


def rows(n: int, space: spaces.Space[Any] = OBSERVATIONS[0]) -> list[MakeEnv]:
    """One function for each of n rows."""
    return [FastEnv(scripted(space), i) for i in range(n)]


@cache
def fitting_space(*names: str) -> spaces.Space[Any] | None:
    """The first space on which Gymnasium's own stack of these, the innermost first, can be run."""
    for space in OBSERVATIONS:
        single: AnyEnv = rows(1, space)[0]()
        batch: AnyEnv = SyncVectorEnv(rows(2, space))
        try:
            for name in names:
                single, batch = TWINS[name].single(single), TWINS[name].batch(batch)
            for env in (single, batch):
                env.reset(seed=1)
                env.step(env.action_space.sample())
        except (AssertionError, TypeError, ValueError, KeyError, AttributeError):
            continue
        return space
    return None


def refused_by_gymnasium(name: str, mode: AutoresetMode) -> bool:
    """Observation wrappers know no SAME_STEP mode; statistics do since Gymnasium 1.4."""
    return mode == SAME_STEP and name.endswith("Observation")


def refused_here(name: str, mode: AutoresetMode) -> bool:
    return mode == SAME_STEP and name == "RecordEpisodeStatistics" and GYMNASIUM < (1, 4)


def allowed(mode: AutoresetMode) -> list[str]:
    """The wrappers that work in this mode."""
    return [
        name for name in TWINS if not (refused_by_gymnasium(name, mode) or refused_here(name, mode))
    ]


STEPS: list[Operation] = [("seed", 5), ("reset", None), *[("step", i) for i in range(9)]]


def in_lockstep(
    names: Sequence[str], make: Build, n: int = 3, program: Iterable[Operation] = STEPS
) -> None:
    """Compare ours with `DummyVecEnv`, in these wrappers, the innermost first."""
    space = fitting_space(*names)
    assert space is not None

    def stack(fns: list[MakeEnv]) -> AnyEnv:
        env = make([FastEnv(fn.script, fn.row) for fn in fns])
        for name in names:
            env = TWINS[name].batch(env)
        return env

    def wrap(env: AnyEnv) -> AnyEnv:
        for name in names:
            env = TWINS[name].single(env)
        return env

    lockstep(scripted(space), n, stack, program, wrap=wrap)


@mode_of
@pytest.mark.parametrize("name", TWINS)
def test_wrapper_is_exact_or_refused(name: str, mode: AutoresetMode) -> None:
    def run() -> None:
        in_lockstep((name,), lambda fns: made("async", fns, mode))

    if refused_by_gymnasium(name, mode):
        with pytest.raises((AssertionError, ValueError)):
            run()
    elif refused_here(name, mode):
        with pytest.raises(sb3compat.UnsupportedEnvError, match="around each sub-environment"):
            run()
    else:
        run()


@mode_of
@given(data=st.data(), n=st.integers(1, 4), copy=st.booleans(), native=st.booleans())
@settings(max_examples=examples(250))
def test_stacks_of_wrappers_are_exact(
    mode: AutoresetMode, data: st.DataObject, n: int, copy: bool, native: bool
) -> None:
    names = [name for name in allowed(mode) if not (native and name in SHOWING)]
    stack = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    assume(fitting_space(*stack) is not None)
    program = data.draw(programs(n, max_size=10))
    if native:
        in_lockstep(stack, lambda fns: NativeEnv(fns, mode), n, uniform(program))
    else:
        in_lockstep(stack, lambda fns: made("sync", fns, mode, copy=copy), n, program)


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


def test_every_wrapper_is_tested_and_documented() -> None:
    assert set(vector.__all__) == TWINS.keys() | REFUSED.keys()
    page = Path(__file__).parents[2] / "docs" / "reference" / "vector-wrappers.md"
    table = "".join(line for line in page.read_text().splitlines() if line.startswith("|"))
    assert {name for name in vector.__all__ if f"`{name}`" in table} == set(vector.__all__)


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
    try:
        make(made("sync", rows(2), mode))
    except (AssertionError, ValueError):  # Gymnasium refuses it itself
        assert name == "NormalizeObservation"
        assert mode != NEXT_STEP
        return
    around = TWINS["TransformReward"].batch
    for inner, outer in ((around, make), (make, around)):
        env = outer(inner(made("sync", rows(2), mode)))
        with pytest.raises(sb3compat.UnsupportedEnvError, match=f"{name}.*{way_out}"):
            sb3compat.to_sb3(env)


@pytest.mark.skipif(GYMNASIUM < (1, 4), reason="Gymnasium 1.4 is the first to have it right")
def test_normalize_reward_is_exact_in_same_step_mode() -> None:
    def stack() -> AnyEnv:
        return vector.NormalizeReward(made("sync", rows(3), SAME_STEP), gamma=0.5)

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
        return REFUSED[name][0](UnknownEnv(rows(2), NEXT_STEP))

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
    env = made("sync", rows(1), SAME_STEP)
    metadata, env.metadata = env.metadata, {**env.metadata, "autoreset_mode": NEXT_STEP}
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
