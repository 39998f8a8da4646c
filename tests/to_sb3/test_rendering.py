"""Pictures: an adapted environment shows what `DummyVecEnv` shows, and warns where it warns."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import sb3compat
from tests.envs import Identity, ScriptedEnv, script
from tests.lockstep import same

pytest.importorskip("stable_baselines3", reason="is compared with stable-baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

EnvFns = list[Callable[[], gym.Env[Any, Any]]]
Source = Callable[[EnvFns], VectorEnv[Any, Any, Any]]
SYNC, ASYNC = SyncVectorEnv, AsyncVectorEnv
NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP

SOURCES: dict[str, Source] = {
    "sync-next": partial(SYNC, autoreset_mode=NEXT_STEP),
    "sync-same": partial(SYNC, autoreset_mode=SAME_STEP),
    "async-next": partial(ASYNC, autoreset_mode=NEXT_STEP),
    "async-same": partial(ASYNC, autoreset_mode=SAME_STEP),
    "wrapped": lambda fns: Identity(SYNC(fns, autoreset_mode=NEXT_STEP)),
}
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


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> Source:
    return SOURCES[request.param]


@contextmanager
def both(source: Source, fns: EnvFns) -> Iterator[tuple[Any, Any]]:
    """The adapted environment and the reference, after the same reset."""
    envs = sb3compat.to_sb3(source(fns)), DummyVecEnv(fns)
    try:
        for env in envs:
            env.seed(2)
            env.reset()
        yield envs
    finally:
        for env in envs:
            env.close()


def painted(num_envs: int, render_mode: str | None) -> EnvFns:
    return [partial(Painted, row, render_mode) for row in range(num_envs)]


def outcome(call: Callable[..., Any], *args: Any) -> tuple[Any, Any]:
    """The result or the exception of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*args)
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.parametrize("num_envs", [1, 2, 3, 5])
def test_tiled_picture_equals_that_of_dummy_vec_env(source: Source, num_envs: int) -> None:
    pictures = []
    with both(source, painted(num_envs, "rgb_array")) as (ours, reference):
        for _ in range(6):
            for args in ((), ("rgb_array",)):
                got, told = outcome(ours.render, *args)
                same(got, reference.render(*args))
                assert not told
            same(list(ours.get_images()), list(reference.get_images()))
            pictures.append(got)
            actions = np.zeros(num_envs, int)
            same(ours.step(actions), reference.step(actions))
        assert ours.get_attr("renders") == reference.get_attr("renders") == [18] * num_envs
    columns = {1: 1, 2: 1, 3: 2, 5: 2}[num_envs]
    rows = {1: 1, 2: 2, 3: 2, 5: 3}[num_envs]
    assert pictures[0].shape == (5 * rows, 4 * columns, 3)
    assert len({picture.tobytes() for picture in pictures}) == 6


# Pictures in human mode show a window, see below.
@pytest.mark.parametrize(
    ("render_mode", "mode"),
    [pair for pair in itertools.product(MODES, MODES) if pair != ("rgb_array", "human")],
)
def test_wrong_render_modes_warn_as_in_sb3(
    source: Source, render_mode: str | None, mode: str | None
) -> None:
    with both(source, painted(2, render_mode)) as (ours, reference):
        got, expected = outcome(ours.render, mode), outcome(reference.render, mode)
        same(got, expected)
        assert ours.get_attr("renders") == reference.get_attr("renders")
        shows = render_mode is not None and mode in (None, render_mode)
        assert bool(got[1]) != shows


@pytest.mark.parametrize("render_mode", [None, "human", "ansi"])
def test_other_render_modes_give_no_images(source: Source, render_mode: str | None) -> None:
    with both(source, painted(3, render_mode)) as (ours, reference):
        got, [(category, message)] = outcome(ours.get_images)
        expected, [(expected_category, _)] = outcome(reference.get_images)
        same(got, expected)
        assert category is expected_category
        assert f"The render mode is {render_mode}" in message
        assert ours.get_attr("renders") == [0] * 3


@pytest.mark.parametrize("render_mode", MODES)
def test_render_mode_and_metadata_equal_those_of_dummy_vec_env(
    source: Source, render_mode: str | None
) -> None:
    with both(source, painted(2, render_mode)) as (ours, reference):
        assert ours.render_mode == reference.render_mode == render_mode
        assert VecMonitor(ours).render_mode == render_mode
        assert ours.metadata == reference.metadata
        assert ours.metadata["render_fps"] == 7


def test_pictures_of_native_cartpole_show_its_states() -> None:
    pytest.importorskip("pygame", reason="draws CartPole")
    native: Any = gym.make_vec(
        "CartPole-v1", num_envs=3, max_episode_steps=3, render_mode="rgb_array"
    )
    env = sb3compat.to_sb3(native)
    assert env.render_mode == "rgb_array"
    assert VecMonitor(env).render_mode == "rgb_array"
    assert env.metadata["render_modes"] == ["rgb_array"]
    single: Any = gym.make("CartPole-v1", render_mode="rgb_array").unwrapped
    single.reset()
    env.seed(1)
    env.reset()
    for step in range(5):
        expected = []
        for state in native.unwrapped.state.T:
            single.state = state
            expected.append(single.render().copy())
        images = env.get_images()
        assert type(images) is list
        for got, picture in zip(images, expected, strict=True):
            np.testing.assert_array_equal(got, picture)
        tiled, told = outcome(env.render)
        assert not told
        assert tiled.shape == (800, 1200, 3)
        np.testing.assert_array_equal(tiled[:400, 600:], expected[1])
        np.testing.assert_array_equal(tiled[400:, :600], expected[2])
        assert not tiled[400:, 600:].any()
        assert any((expected[0] != picture).any() for picture in expected)
        env.step(np.array([0, 1, step % 2]))
    single.close()
    env.close()


def test_render_within_a_step_or_after_close_is_refused() -> None:
    with closing(sb3compat.to_sb3(AsyncVectorEnv(painted(2, "rgb_array")))) as env:
        env.reset()
        expected = env.render()
        env.step_async(np.zeros(2, int))
        with pytest.raises(RuntimeError, match=r"step_wait\(\) first"):
            env.render()
        env.step_wait()
        assert (env.render() != expected).any()
    with pytest.raises(RuntimeError, match="closed"):
        env.render()
