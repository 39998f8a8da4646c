"""The stand-in for SB3's `VecEnv`, where SB3 is not installed, does what SB3's does."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import numpy as np
import pytest

from sb3compat._upstream import sb3 as upstream
from tests.envs import fns

base: Any = pytest.importorskip("stable_baselines3.common.vec_env.base_vec_env")


class Hidden:
    """Hides SB3 from imports."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name.partition(".")[0] == "stable_baselines3":
            raise ModuleNotFoundError(name="stable_baselines3")


@pytest.fixture(scope="module")
def without_sb3() -> Any:
    """The module, as it is without SB3."""
    spec = spec_from_file_location("without_sb3", upstream.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    held = {name: sys.modules[name] for name in sys.modules if name.startswith("stable_baselines3")}
    try:
        for name in held:
            del sys.modules[name]
        sys.meta_path.insert(0, Hidden)  # type: ignore[arg-type]
        spec.loader.exec_module(module)
    finally:
        sys.meta_path.remove(Hidden)  # type: ignore[arg-type]
        sys.modules.update(held)
    return module


def made(cls: Any, render_mode: str | None = "rgb_array", images: int = 5) -> Any:
    """A `VecEnv` of that base class, with the images of some rows."""

    class Env(cls):  # type: ignore[misc]
        def __init__(self) -> None:
            space = fns()[0]().observation_space
            super().__init__(images, space, space)

        def get_attr(self, name: str, indices: Any = None) -> list[Any]:
            if name == "render_mode":
                return [render_mode] * images
            return [name] * images

        def set_attr(self, *args: Any) -> None: ...
        def env_method(self, *args: Any, **kwargs: Any) -> Any: ...
        def env_is_wrapped(self, *args: Any) -> Any: ...
        def reset(self) -> Any: ...
        def step_async(self, actions: Any) -> None: ...
        def step_wait(self) -> Any: ...
        def close(self) -> None: ...

        def get_images(self) -> Any:
            return [np.full((2, 3, 3), row + 1, np.uint8) for row in range(images)]

    return Env()


def test_stand_in_is_used_without_sb3_alone(without_sb3: Any) -> None:
    assert not without_sb3.HAS_SB3
    assert upstream.HAS_SB3
    assert upstream.VecEnv is base.VecEnv
    assert without_sb3.VecEnv.__module__ == "without_sb3"
    with pytest.raises(ImportError, match=r"of the old gym.*sb3compat\[sb3\].*shimmy"):
        without_sb3.patched_env(object())


@pytest.mark.parametrize("mode", ["rgb_array", "human", None])
def test_both_start_alike(mode: str | None, without_sb3: Any) -> None:
    ours, theirs = made(without_sb3.VecEnv, mode), made(base.VecEnv, mode)
    names = ("num_envs", "observation_space", "action_space", "reset_infos", "render_mode")
    for name in (*names, "metadata", "_seeds", "_options"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.unwrapped is ours


@pytest.mark.parametrize("mode", [None, "rgb_array", "human"])
@pytest.mark.filterwarnings("ignore")
def test_frames_are_tiled_alike(mode: str | None, without_sb3: Any) -> None:
    for count in (1, 2, 4, 5):
        ours = made(without_sb3.VecEnv, images=count)
        np.testing.assert_equal(ours.render(), made(base.VecEnv, images=count).render())
        if mode == "human":
            assert ours.render(mode) is None
    with pytest.warns(UserWarning, match="Expected render_mode='rgb_array', got render_mode=None"):
        assert made(without_sb3.VecEnv, None).render() is None
