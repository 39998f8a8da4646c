"""Godot RL Agents' `StableBaselinesGodotEnv`.

Source: edbeeching/godot_rl_agents, 0.8.2, godot_rl/wrappers/stable_baselines_wrapper.py, lines
13-152. Neither flag besides `done`, and no last observation: lines 84-90. What is not there: lines
129-142. SB3's constructor is not called: lines 14-47. The connection:
godot_rl/core/godot_env.py, lines 205-281; there both flags are the game's `done` (lines 218-224),
and a second `close` writes to a closed socket (lines 270-277).

The game begins a new episode in the step in which one has ended, as far as it can: its
observation is then that of the new episode.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from conformance.specimens.public_adapters.walks import Walks


class GodotEnv:
    """A game at the other end of a socket; it answers with lists, as JSON has no arrays."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.observation_space = spaces.Dict({"obs": Walks.observation_space()})
        self.action_space = Walks.action_space()
        self._walks = Walks(num_envs)
        self._walks.share(1)
        self._open = True

    def step_send(self, actions: Any) -> None:
        self._write()
        self._walks.move(actions)

    def step_recv(self) -> Any:
        walks = self._walks
        rewards, done = walks.rewards.tolist(), walks.terminated | walks.truncated
        walks.reset(np.flatnonzero(done))
        return self._obs(), rewards, done.tolist(), done.tolist(), [{} for _ in done]

    def reset(self) -> Any:
        self._write()
        self._walks.reset()
        return self._obs(), [{}] * self.num_envs

    def close(self) -> None:
        self._write()
        self._open = False

    def _obs(self) -> list[dict[str, Any]]:
        return [{"obs": obs} for obs in self._walks.obs.tolist()]

    def _write(self) -> None:
        if not self._open:
            raise OSError(9, "Bad file descriptor")


class StableBaselinesGodotEnv(VecEnv):
    """The adapter, with one game."""

    def __init__(self, game: GodotEnv) -> None:
        self.envs = [game]
        self.results: Any = None

    @property
    def observation_space(self) -> Any:  # type: ignore[override]
        return self.envs[0].observation_space

    @property
    def action_space(self) -> Any:  # type: ignore[override]
        return self.envs[0].action_space

    @property
    def num_envs(self) -> Any:  # type: ignore[override]
        return self.envs[0].num_envs

    def step(self, actions: Any) -> Any:
        self.envs[0].step_send(actions[: self.num_envs])
        obs, rewards, done, _, infos = self.envs[0].step_recv()
        return self._batch(obs), np.array(rewards, np.float32), np.array(done), infos

    def reset(self) -> Any:
        return self._batch(self.envs[0].reset()[0])

    @staticmethod
    def _batch(obs: list[dict[str, Any]]) -> dict[str, Any]:
        return {key: np.array([row[key] for row in obs]) for key in obs[0]}

    def step_async(self, actions: Any) -> None:
        self.results = self.step(actions)

    def step_wait(self) -> Any:
        return self.results

    def close(self) -> None:
        self.envs[0].close()

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs

    def env_method(self) -> Any:  # type: ignore[override]
        raise NotImplementedError

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(attr_name)

    def seed(self, seed: int | None = None) -> Any:
        raise NotImplementedError

    def set_attr(self) -> Any:  # type: ignore[override]
        raise NotImplementedError
