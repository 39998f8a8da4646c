"""`BraxSB3Wrapper`, for a batched environment of Brax.

Source: gist.github.com/araffin/a7a576ec1453e74d9bb93120918ef7e7, read in public copies of it: its
methods `step_wait`, `to_list`, `seed`, `get_attr`. The environment: google/brax, v0.14.2,
brax/envs/wrappers/training.py, lines 98-158, as brax/envs/__init__.py, lines 97-104, wraps it: a
row that has ended begins again in the state of the last full reset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import Walks


class Brax:
    """A batched environment of Brax with its wrappers for episodes and resets."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self._walks = Walks(batch_size)

    def reset(self, key: int) -> Any:
        self._walks.seed(np.random.SeedSequence(key).generate_state(self.batch_size).tolist())
        self._walks.reset()
        return self._walks.obs

    def step(self, actions: Any) -> Any:
        walks = self._walks
        walks.move(actions)
        rewards = walks.rewards.astype(np.float32)
        terminated, truncated = walks.terminated, walks.truncated
        done = (terminated | truncated).astype(np.float32)
        steps = walks.age.astype(np.float32)
        info = {"steps": steps, "truncation": (truncated & ~terminated).astype(np.float32)}
        again = done.astype(bool)
        walks.place[again], walks.age[again] = walks.start[again], 0
        return walks.obs, rewards, done, {**info, "first_pipeline_state": object()}


class BraxSB3Wrapper(VecEnv):
    """The gist's wrapper, with its default `keep_infos=True`."""

    def __init__(self, env: Brax, seed: int = 0) -> None:
        self._env = env
        self.metadata: dict[str, Any] = {
            "render_modes": ["human", "rgb_array"],
            "video.frames_per_second": 20.0,
        }
        self.render_mode = "rgb_array"
        self.num_envs = env.batch_size
        self.observation_space = Walks.observation_space()
        self.action_space = Walks.action_space()
        self.seed(seed)

    def seed(self, seed: Any = 0) -> Any:
        self._key = int(seed)  # so does a key of JAX refuse None

    def reset(self) -> Any:
        used, self._key = self._key, int(np.random.SeedSequence(self._key).generate_state(1)[0])
        return np.array(self._env.reset(used))

    def step_async(self, actions: Any) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        obs, rewards, done, info = self._env.step(self.actions)
        infos = [dict.fromkeys(info) for _ in range(self.num_envs)]
        for i, of_row in enumerate(infos):
            for key, value in info.items():
                if isinstance(value, np.ndarray):
                    of_row[key] = value[i]
        return np.array(obs), np.array(rewards), np.array(done).astype(bool), infos

    def get_images(self) -> Any:
        return [self._env._walks.frame(i) for i in range(self.num_envs)]

    def render(self, mode: str | None = "human") -> Any:
        return self._env._walks.frame(0) if mode == "rgb_array" else super().render("human")

    def close(self) -> None:
        """Keep nothing open."""

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        n = self.num_envs if indices is None else len(indices)
        return [getattr(self, attr_name)] * n

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError("attributes cannot be set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False]
