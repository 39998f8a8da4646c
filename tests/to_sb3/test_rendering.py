"""Pictures and videos: what `DummyVecEnv` shows, and what is filmed without the adapter."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector

import sb3compat
from tests.envs import GYMNASIUM, ScriptedEnv, fns, script
from tests.lockstep import same
from tests.native import NativeEnv
from tests.parallel.teams import forked
from tests.profiles import some
from tests.to_sb3.driving import MODES, NEXT_STEP, SAME_STEP, SOURCES, made, step
from tests.to_sb3.vector_wrappers import AnyEnv, rows
from tests.vec_wrappers import HandsOn

pytest.importorskip("stable_baselines3", reason="is compared with stable-baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

RENDER_MODES = (None, "rgb_array", "human", "ansi")


class Painted(ScriptedEnv):
    """Its picture, higher than wide, shows the row, the episode and the step."""

    metadata = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 7}

    def __init__(self, row: int, render_mode: str | None) -> None:
        super().__init__(script(lengths=(2, 3)), row)
        # Its own: up to Gymnasium 1.3, vector environments write their mode into it.
        self.metadata = dict(self.metadata)
        self.render_mode = render_mode
        self.renders = 0

    def render(self) -> Any:
        self.renders += 1
        if self.render_mode == "ansi":
            return f"row {self.row}"
        if self.render_mode == "human":
            return None
        frame = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
        frame[0], frame[1], frame[2] = self.row, self._resets, self._time
        return frame


def both(source: str, render_mode: str | None) -> Any:
    """The adapted environment and the reference, after the same reset."""
    fns = [partial(Painted, row, render_mode) for row in range(3)]
    envs = sb3compat.to_sb3(made(source, fns)), DummyVecEnv(fns)
    for env in envs:
        env.seed(2)
        env.reset()
    return envs


def outcome(call: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """The result or the exception of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*args)
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.parametrize("render_mode", RENDER_MODES)
@pytest.mark.parametrize("source", SOURCES)
def test_pictures_and_warnings_are_those_of_dummy_vec_env(
    source: str, render_mode: str | None
) -> None:
    ours, reference = both(source, render_mode)
    assert ours.render_mode == reference.render_mode == VecMonitor(ours).render_mode
    assert ours.metadata == reference.metadata
    assert ours.metadata["render_fps"] == 7
    for mode in RENDER_MODES:
        if (render_mode, mode) == ("rgb_array", "human"):
            continue  # shows a window
        got, expected = outcome(ours.render, mode), outcome(reference.render, mode)
        same(got, expected)
        assert bool(got[1]) == (render_mode is None or mode not in (None, render_mode))
    (got, ours_told), (expected, told) = outcome(ours.get_images), outcome(reference.get_images)
    same(got, expected)
    assert [category for category, _ in ours_told] == [category for category, _ in told]
    assert all(f"The render mode is {render_mode}" in text for _, text in ours_told)
    assert ours.get_attr("renders") == reference.get_attr("renders")
    for _ in range(3):
        same(step(ours), step(reference))
        same(outcome(ours.render), outcome(reference.render))


def test_render_within_a_step_or_after_close_is_refused() -> None:
    env, _ = both("async", "rgb_array")
    expected = env.render()
    env.step_async(np.zeros(3, int))
    with pytest.raises(RuntimeError, match=r"step_wait\(\) first"):
        env.render()
    env.step_wait()
    assert (env.render() != expected).any()
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.render()


class FrameEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Its frames show the row, the episode and the step."""

    def render(self) -> Any:
        env: Any = self.unwrapped
        frame = np.zeros((16, 16, 3), np.uint8)
        frame[...] = env.row, env._resets, env._time
        return frame


def framed(mode: AutoresetMode, n: int) -> AnyEnv:
    return made("sync", [lambda fn=fn: FrameEnv(fn()) for fn in rows(n)], mode)


def record(env: AnyEnv, folder: Path, **kwargs: Any) -> tuple[AnyEnv, list[list[Any]]]:
    """`RecordVideo`, and the frames of the videos that it has written."""
    videos: list[list[Any]] = []

    class Kept(vector.RecordVideo):
        def stop_recording(self) -> None:
            videos.append([frame.copy() for frame in self.recorded_frames])
            super().stop_recording()

    return Kept(env, str(folder), episode_trigger=lambda _: True, **kwargs), videos


since_videos = pytest.mark.skipif(
    GYMNASIUM < (1, 2), reason="RecordVideo is there since Gymnasium 1.2"
)


FILMED = [(mode, mode == MODES[0]) for mode in MODES]  # and whether the first row only
FILMED += [(mode, mode != MODES[0]) for mode in MODES]


@since_videos
@pytest.mark.parametrize(("mode", "first_only"), some(FILMED, 3))
def test_videos_show_the_first_row_as_without_the_adapter(
    mode: AutoresetMode, first_only: bool, tmp_path: Path
) -> None:
    """The videos follow the first row, whose pictures are the same as without the adapter."""
    pytest.importorskip("moviepy", reason="RecordVideo writes with moviepy")
    natural = mode if mode == SAME_STEP else NEXT_STEP
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


@since_videos
def test_rendering_natively_does_not_add_to_the_video(tmp_path: Path) -> None:
    native = gym.make_vec("CartPole-v1", num_envs=2, render_mode="rgb_array")
    source, _ = record(native, tmp_path)
    ours = sb3compat.to_sb3(source)
    ours.reset()
    ours.step(np.array([0, 1]))
    assert len(ours.get_images()) == 2
    assert len(source.recorded_frames) == 2
    ours.close()


IMAGE = np.zeros((4, 4, 3), np.uint8)


def natively(shown: Any) -> Any:
    """Renders what it is told to."""
    env: Any = NativeEnv(fns(2), SAME_STEP)
    env.render_mode, env.render = "rgb_array", lambda: shown
    return env


def of_sb3(shown: Any) -> Any:
    env: Any = HandsOn(DummyVecEnv(fns(2)))
    env.get_images = lambda: shown
    return env


def in_a_worker(make: Callable[[], Any]) -> Any:
    env = forked([make, *fns(1)], 1)
    env.reset()
    return env


@pytest.mark.parametrize("wrong", [None, IMAGE[:2], IMAGE, (IMAGE,), (IMAGE,) * 3, "ab"])
@pytest.mark.parametrize(
    "show",
    [
        lambda shown: sb3compat.to_sb3(natively(shown)).get_images(),
        lambda shown: in_a_worker(partial(natively, shown)).get_images(),
        lambda shown: in_a_worker(partial(of_sb3, shown)).get_images(),
        lambda shown: sb3compat.to_gymnasium(of_sb3(shown)).render(),
    ],
)
def test_another_number_of_frames_than_rows_is_refused(
    show: Callable[[Any], Any], wrong: Any
) -> None:
    with pytest.raises(sb3compat.ConversionError, match="to return 2 frames, one for each row"):
        show(wrong)
    assert len(show([IMAGE] * 2)) in (2, 3)
