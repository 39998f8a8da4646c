"""Pictures: an adapted environment shows what `DummyVecEnv` shows, and warns where it warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import sb3compat
from tests.envs import ScriptedEnv, script
from tests.lockstep import same
from tests.to_sb3.driving import SOURCES, made, step

pytest.importorskip("stable_baselines3", reason="is compared with stable-baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

MODES = (None, "rgb_array", "human", "ansi")


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


@contextmanager
def both(source: str, render_mode: str | None) -> Iterator[tuple[Any, Any]]:
    """The adapted environment and the reference, after the same reset."""
    fns = [partial(Painted, row, render_mode) for row in range(3)]
    envs: Any = sb3compat.to_sb3(made(source, fns)), DummyVecEnv(fns)
    try:
        for env in envs:
            env.seed(2)
            env.reset()
        yield envs
    finally:
        for env in envs:
            env.close()


def outcome(call: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """The result or the exception of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*args)
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.parametrize("render_mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
def test_pictures_and_warnings_are_those_of_dummy_vec_env(
    source: str, render_mode: str | None
) -> None:
    with both(source, render_mode) as (ours, reference):
        assert ours.render_mode == reference.render_mode == VecMonitor(ours).render_mode
        assert ours.metadata == reference.metadata
        assert ours.metadata["render_fps"] == 7
        for mode in MODES:
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
    with both("async", "rgb_array") as (env, _):
        expected = env.render()
        env.step_async(np.zeros(3, int))
        with pytest.raises(RuntimeError, match=r"step_wait\(\) first"):
            env.render()
        env.step_wait()
        assert (env.render() != expected).any()
    with pytest.raises(RuntimeError, match="closed"):
        env.render()
