"""OmniGibson's `SB3VectorEnvironment`, a subclass of SB3's `DummyVecEnv`.

Source: StanfordVL/OmniGibson, 178270a, omnigibson/envs/sb3_vec_env.py, lines 12-75. One simulator
for all rows: line 39. A row that has ended is reset, with the simulator's step: line 54, and
omnigibson/envs/env_base.py, 1.1.1, lines 666-682. A seed, and options, that the environment takes
and does not use: line 61, and line 666 there. `reset_infos`: lines 58-75 do not set them.

Release 1.1.1 ends `step_wait` with `torch.clone` of NumPy arrays (lines 88-93), which raises
TypeError with Stable-Baselines3 as published; so this is the version before.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv

from conformance.specimens.public_adapters.walks import Walks


class Simulator:
    """One simulator: a step moves every robot on, with the last action that it was given."""

    def __init__(self, robots: int) -> None:
        self.walks = Walks(robots)
        self.walks.share(0)
        self.actions = np.zeros(robots)

    def step(self) -> None:
        self.walks.place += 0.5 * self.actions


class Environment(gym.Env[Any, Any]):
    """A robot of the simulator."""

    render_mode = None

    def __init__(self, simulator: Simulator, robot: int) -> None:
        self.observation_space = Walks.observation_space()
        self.action_space = Walks.action_space()
        self._simulator, self._robot = simulator, robot

    def pre_step(self, action: Any) -> None:
        self._simulator.actions[self._robot] = np.clip(action[0], -1, 1)

    def post_step(self, action: Any) -> Any:
        walks, i = self._simulator.walks, self._robot
        walks.age[i] += 1
        info: dict[str, Any] = {"obs_info": {}}
        ended, cut = bool(walks.terminated[i]), bool(walks.truncated[i])
        return self.get_obs(), float(walks.rewards[i]), ended, cut, info

    def get_obs(self) -> Any:
        return self._simulator.walks.obs[self._robot]

    def reset(self, get_obs: bool = True, **kwargs: Any) -> Any:
        self._simulator.walks.reset([self._robot])
        self._simulator.actions[self._robot] = 0.0
        if not get_obs:
            return None
        self._simulator.step()
        return self.get_obs(), {}


def _itself(env: Environment) -> Environment:
    return env


class SB3VectorEnvironment(DummyVecEnv):
    """The adapter."""

    def __init__(self, num_envs: int) -> None:
        self.simulator = Simulator(num_envs)
        made = [Environment(self.simulator, i) for i in range(num_envs)]
        super().__init__([partial(_itself, env) for env in made])

    def step_async(self, actions: Any) -> None:
        self.actions = actions
        for i, action in enumerate(actions):
            self.envs[i].pre_step(action)  # type: ignore[attr-defined]

    def step_wait(self) -> Any:
        self.simulator.step()
        for i, env in enumerate(self.envs):
            result = env.post_step(self.actions[i])  # type: ignore[attr-defined]
            obs, reward, terminated, truncated, info = result
            self.buf_rews[i], self.buf_infos[i] = reward, info
            self.buf_dones[i] = terminated or truncated
            info["TimeLimit.truncated"] = truncated and not terminated
            if self.buf_dones[i]:
                info["terminal_observation"] = obs
                obs, self.reset_infos[i] = env.reset()
            self._save_obs(i, obs)
        infos = deepcopy(self.buf_infos)
        return self._obs_from_buf(), np.copy(self.buf_rews), np.copy(self.buf_dones), infos

    def reset(self) -> Any:
        for env, seed, options in zip(self.envs, self._seeds, self._options, strict=True):
            given = {"options": options} if options else {}
            env.reset(get_obs=False, seed=seed, **given)  # type: ignore[call-arg]
        for _ in range(30):
            self.simulator.step()
        for i, env in enumerate(self.envs):
            self._save_obs(i, env.get_obs())  # type: ignore[attr-defined]
        self._reset_seeds()
        self._reset_options()
        return self._obs_from_buf()
