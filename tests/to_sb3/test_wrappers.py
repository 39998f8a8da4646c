"""Every vector wrapper of Gymnasium, and every pair: exact, or refused with the way out.

Exact means: what `DummyVecEnv` yields with the wrapper's twin for single environments around each
of its sub-environments.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sb3compat
from tests.covering import Pair, chosen
from tests.envs import GYMNASIUM, MakeEnv, Script, script
from tests.lockstep import Operation, lockstep, same
from tests.native import UnknownEnv
from tests.profiles import examples, some
from tests.strategies import programs

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")
pytest.importorskip("pygame", reason="HumanRendering shows its frames with pygame")
pytest.importorskip("cv2", reason="ResizeObservation and HumanRendering need OpenCV")

if GYMNASIUM < (1, 4):
    # A RecordVideo that refuses its environment raises again when it is deleted.
    pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

MODES = list(AutoresetMode)
SAME_STEP = AutoresetMode.SAME_STEP
mode_of = pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])

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


def both(name: str, **kwargs: Any) -> Twins:
    return Twins(
        lambda env: getattr(vector, name)(env, **kwargs),
        lambda env: getattr(wrappers, name)(env, **kwargs),
    )


def stats_key(env: AnyEnv) -> str:
    return "outer" if "RecordEpisodeStatistics" in repr(env) else "episode"


def never(_: int) -> bool:
    return False


FOLDER = tempfile.TemporaryDirectory()  # RecordVideo makes it, whether it records or not


def record_video(env: AnyEnv) -> AnyEnv:
    return vector.RecordVideo(env, FOLDER.name, episode_trigger=never)


TWINS: dict[str, Twins] = {
    "TransformObservation": Twins(
        lambda env: vector.TransformObservation(
            env, halved, single_observation_space=env.single_observation_space
        ),
        lambda env: wrappers.TransformObservation(env, halved, env.observation_space),
    ),
    "VectorizeTransformObservation": Twins(
        lambda env: vector.VectorizeTransformObservation(
            env,
            wrappers.TransformObservation,
            func=halved,
            observation_space=env.single_observation_space,
        ),
        lambda env: wrappers.TransformObservation(env, halved, env.observation_space),
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
        lambda env: wrappers.TransformAction(env, halved, env.action_space),
    ),
    "VectorizeTransformAction": Twins(
        lambda env: vector.VectorizeTransformAction(
            env, wrappers.TransformAction, func=halved, action_space=env.single_action_space
        ),
        lambda env: wrappers.TransformAction(env, halved, env.action_space),
    ),
    "ClipAction": both("ClipAction"),
    "RescaleAction": both("RescaleAction", min_action=np.float32(-3), max_action=np.float32(3)),
    "TransformReward": both("TransformReward", func=lambda r: r * 0.5),
    "VectorizeTransformReward": Twins(
        lambda env: vector.VectorizeTransformReward(
            env, wrappers.TransformReward, func=lambda r: r * 0.5
        ),
        lambda env: wrappers.TransformReward(env, lambda r: r * 0.5),
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


class FastEnv(MakeEnv):
    """Shown as fast as possible: HumanRendering waits according to `render_fps`."""

    def __call__(self) -> gym.Env[Any, Any]:
        env = super().__call__()
        env.unwrapped.metadata = {**env.unwrapped.metadata, "render_fps": 100_000}
        return env


def scripted(space: spaces.Space[Any], **kwargs: Any) -> Script:
    return script(
        observation_space=space,
        action_space=ACTIONS,
        lengths=(2, 3, 1),
        endings=("truncated", "both", "terminated"),
        **kwargs,
    )


def sync(
    fns: list[MakeEnv], mode: AutoresetMode = AutoresetMode.NEXT_STEP, **kwargs: Any
) -> AnyEnv:
    return SyncVectorEnv([FastEnv(fn.script, fn.row) for fn in fns], autoreset_mode=mode, **kwargs)


def parallel(fns: list[MakeEnv], mode: AutoresetMode, **kwargs: Any) -> AnyEnv:
    return AsyncVectorEnv([FastEnv(fn.script, fn.row) for fn in fns], autoreset_mode=mode, **kwargs)


@cache
def fitting_space(*names: str) -> spaces.Space[Any] | None:
    """The first space on which Gymnasium's own stack of these, the innermost first, can be run."""
    for space in OBSERVATIONS:
        single: AnyEnv = MakeEnv(scripted(space), 0)()
        batch = sync([MakeEnv(scripted(space), i) for i in range(2)])
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


def reset_and_steps(number: int) -> list[tuple[str, Any]]:
    return [("seed", 5), ("reset", None), *[("step", i) for i in range(number)]]


def refused_by_gymnasium(name: str, mode: AutoresetMode) -> bool:
    """Observation wrappers know no SAME_STEP mode; statistics do since Gymnasium 1.4."""
    return mode == SAME_STEP and name.endswith("Observation")


def refused_here(name: str, mode: AutoresetMode) -> bool:
    return mode == SAME_STEP and name == "RecordEpisodeStatistics" and GYMNASIUM < (1, 4)


def in_lockstep(
    names: tuple[str, ...],
    build: Callable[..., AnyEnv],
    n: int = 3,
    program: list[Operation] | None = None,
    **kwargs: Any,
) -> None:
    """Compare ours with `DummyVecEnv`, in these wrappers, the innermost first."""
    space = fitting_space(*names)
    assert space is not None

    def stack(fns: list[MakeEnv]) -> AnyEnv:
        env = build(fns, **kwargs)
        for name in names:
            env = TWINS[name].batch(env)
        return env

    def wrap(env: AnyEnv) -> AnyEnv:
        for name in names:
            env = TWINS[name].single(env)
        return env

    lockstep(scripted(space), n, stack, program or reset_and_steps(9), wrap=wrap)


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


class FrameEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Its frames show the row, the episode and the step, and it remembers the rendered ones."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        self.seen: list[tuple[int, int]] = []

    def render(self) -> Any:
        env: Any = self.unwrapped
        self.seen.append((env._resets, env._time))
        frame = np.zeros((16, 16, 3), np.uint8)
        frame[...] = env.row, env._resets, env._time
        return frame


def framed(mode: AutoresetMode, n: int) -> AnyEnv:
    fns = [FastEnv(scripted(OBSERVATIONS[0]), i) for i in range(n)]
    return SyncVectorEnv([lambda fn=fn: FrameEnv(fn()) for fn in fns], autoreset_mode=mode)


def record(env: AnyEnv, folder: Path, **kwargs: Any) -> tuple[AnyEnv, list[list[Any]]]:
    """`RecordVideo`, and the frames of the videos that it has written."""
    videos: list[list[Any]] = []

    class Kept(vector.RecordVideo):
        def stop_recording(self) -> None:
            videos.append([frame.copy() for frame in self.recorded_frames])
            super().stop_recording()

    return Kept(env, str(folder), episode_trigger=lambda _: True, **kwargs), videos


@pytest.mark.skipif(GYMNASIUM < (1, 2), reason="RecordVideo is there since Gymnasium 1.2")
@pytest.mark.parametrize(
    ("mode", "first_only"),
    some(
        [
            *((MODES[0], True), (MODES[1], False), (MODES[2], False)),
            *((MODES[0], False), (MODES[1], True), (MODES[2], True)),
        ],
        3,
    ),
)
def test_videos_show_the_first_row_as_without_the_adapter(
    mode: AutoresetMode, first_only: bool, tmp_path: Path
) -> None:
    """The videos follow the first row, whose pictures are the same as without the adapter."""
    pytest.importorskip("moviepy", reason="RecordVideo writes with moviepy")
    natural = mode if mode == SAME_STEP else AutoresetMode.NEXT_STEP
    theirs, expected = record(framed(natural, 3), tmp_path / "theirs", record_first_only=first_only)
    source, got = record(framed(mode, 3), tmp_path / "ours", record_first_only=first_only)
    ours = sb3compat.to_sb3(source)
    theirs.reset()
    ours.reset()
    actions = np.zeros((3, 2), np.float32)
    # The episodes last for 2, 3 and 1 steps, over and over.
    while len(expected) < 3:
        theirs.step(actions)
    while len(got) < 3:
        ours.step(actions)
    for ours_frames, frames in zip(got, expected[:3], strict=True):
        np.testing.assert_array_equal(
            [frame[0, 0] for frame in ours_frames], [frame[0, 0] for frame in frames]
        )
        for row in range(1 if first_only else 3):
            shown = [tuple(frame[0, 16 * row]) for frame in ours_frames]
            assert len(set(shown)) == len(shown)
    ours.close()
    assert len(list((tmp_path / "ours").glob("*.mp4"))) >= 3


@mode_of
@pytest.mark.parametrize("n", [1, 3])
def test_human_rendering_shows_each_step_and_each_reset(mode: AutoresetMode, n: int) -> None:
    """Each step shows a picture, and each reset within a step another one."""
    source = framed(mode, n)
    ours = sb3compat.to_sb3(vector.HumanRendering(source))
    ours.reset()
    resets = 0
    for _ in range(8):
        dones = ours.step(np.zeros((n, 2), np.float32))[2]
        resets += int(dones.any()) if mode != SAME_STEP else 0
    for i, env in enumerate(source.envs):
        assert len(env.seen) == 1 + 8 + resets
        # All frames are in order; with one row, which waits for no other row, none comes twice.
        assert env.seen == sorted(env.seen)
        if n == 1:
            assert len(set(env.seen)) == len(env.seen)
        if mode != SAME_STEP:
            length = scripted(OBSERVATIONS[0]).lengths[(i + 1) % 3]
            assert {(1, t) for t in range(length + 1)} <= set(env.seen)
    ours.close()


@pytest.mark.skipif(GYMNASIUM < (1, 2), reason="RecordVideo is there since Gymnasium 1.2")
def test_rendering_natively_does_not_add_to_the_video(tmp_path: Path) -> None:
    native = gym.make_vec("CartPole-v1", num_envs=2, render_mode="rgb_array")
    source, _ = record(native, tmp_path)
    ours = sb3compat.to_sb3(source)
    ours.reset()
    ours.step(np.array([0, 1]))
    assert len(ours.get_images()) == 2
    assert len(source.recorded_frames) == 2
    ours.close()


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
