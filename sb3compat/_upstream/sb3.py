"""The base class of the adapter: Stable-Baselines3's `VecEnv`, or a substitute without SB3.

The only module that imports SB3. With the substitute, everything except SB3 itself works if neither
SB3 nor torch is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from sb3compat._upstream.private import private
from sb3compat.errors import install_line, warn

HAS_SB3 = True
if TYPE_CHECKING:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv
else:
    try:
        from stable_baselines3.common.callbacks import BaseCallback
        from stable_baselines3.common.vec_env import VecEnv
    except ModuleNotFoundError as error:
        # SB3 is installed but broken: hiding that would cause a confusing error much later.
        if error.name != "stable_baselines3":
            raise
        HAS_SB3 = False

if not TYPE_CHECKING and not HAS_SB3:

    class BaseCallback:
        """A substitute for SB3's class, which cannot be used without SB3."""

        def __init__(self, verbose: int = 0) -> None:
            raise ImportError(
                "Expected Stable-Baselines3 to be installed for its callbacks: "
                f"{install_line('sb3')}"
            )

    class VecEnv:
        """What `DrivenVecEnv` inherits from SB3's `VecEnv`."""

        def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
            self.num_envs = num_envs
            self.observation_space = observation_space
            self.action_space = action_space
            self.reset_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
            self._reset_seeds()
            self._reset_options()
            self.render_mode = self.get_attr("render_mode")[0]

        def _reset_seeds(self) -> None:
            self._seeds: list[int | None] = [None] * self.num_envs

        def _reset_options(self) -> None:
            self._options: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

        def step(self, actions: Any) -> Any:
            """Start a step and finish it."""
            self.step_async(actions)
            return self.step_wait()

        def seed(self, seed: int | None = None) -> Sequence[int | None]:
            """Set the seeds of the next reset: `seed`, `seed + 1`, and so on."""
            if seed is None:
                seed = int(np.random.randint(0, np.iinfo(np.uint32).max, dtype=np.uint32))
            self._seeds = [seed + row for row in range(self.num_envs)]
            return self._seeds

        def set_options(self, options: Any = None) -> None:
            """Set the options of the next reset: one dict for all rows, or one for each."""
            self._options = deepcopy(
                options if isinstance(options, list) else [options or {}] * self.num_envs
            )

        def render(self, mode: str | None = None) -> Any:
            """The images of all rows, tiled to one; None in other render modes."""
            if self.render_mode != "rgb_array" or mode not in (None, "rgb_array"):
                warn(
                    f"Expected render_mode='rgb_array', got render_mode={self.render_mode!r} "
                    f"and mode={mode!r}: there is no image. Make the environment with that render "
                    "mode."
                )
                return None
            images = [np.asarray(image) for image in self.get_images()]
            columns = int(np.ceil(len(images) / np.ceil(np.sqrt(len(images)))))
            missing = -len(images) % columns
            images += [np.zeros_like(images[0])] * missing
            strips = [images[i : i + columns] for i in range(0, len(images), columns)]
            return np.vstack([np.hstack(strip) for strip in strips])

        @property
        def unwrapped(self) -> Any:
            """The environment itself: it is no wrapper."""
            return self

        def getattr_depth_check(self, name: str, already_found: bool) -> str | None:
            """The class that has the attribute, where a wrapper around it has it as well."""
            if already_found and hasattr(self, name):
                return f"{type(self).__module__}.{type(self).__name__}"
            return None


def of_sb3(module: str, name: str) -> Any:
    """A class or function of a module below `stable_baselines3.common`."""
    return getattr(import_module(f"stable_baselines3.common.{module}"), name)


def patched_env(env: Any) -> Any:
    """A Gymnasium environment made of one of the old `gym`.

    Raises:
        ImportError: If SB3 or shimmy is missing.
    """
    if not HAS_SB3:
        raise ImportError(
            f"Expected a gymnasium.Env, got {env} of the old gym. Install Stable-Baselines3 and "
            f"shimmy, which convert it: {install_line('sb3')} 'shimmy>=2.0'"
        )
    return private(of_sb3("vec_env", "patch_gym"), "_patch_env")(env)


__all__ = ["HAS_SB3", "BaseCallback", "VecEnv", "of_sb3", "patched_env"]
