"""`RecordVideo` below the adapter: what it films."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector

import sb3compat
from tests.envs import GYMNASIUM
from tests.profiles import some
from tests.to_sb3.driving import MODES, NEXT_STEP, SAME_STEP, made
from tests.to_sb3.vector_wrappers import AnyEnv, rows

pytestmark = pytest.mark.skipif(
    GYMNASIUM < (1, 2), reason="RecordVideo is there since Gymnasium 1.2"
)


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


def test_rendering_natively_does_not_add_to_the_video(tmp_path: Path) -> None:
    native = gym.make_vec("CartPole-v1", num_envs=2, render_mode="rgb_array")
    source, _ = record(native, tmp_path)
    ours = sb3compat.to_sb3(source)
    ours.reset()
    ours.step(np.array([0, 1]))
    assert len(ours.get_images()) == 2
    assert len(source.recorded_frames) == 2
    ours.close()
