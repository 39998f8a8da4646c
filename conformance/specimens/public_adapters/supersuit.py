"""SuperSuit's `concat_vec_envs_v1(..., base_class="stable_baselines3")`.

Source: Farama-Foundation/SuperSuit, 3.11.0, supersuit/vector: sb3_vector_wrapper.py, lines 9-55;
concat_vec_env.py, lines 21-111; markov_vector_wrapper.py, lines 6-119. The end of an episode: lines
73-101 of the last. The flags: lines 84-91 there, and lines 28-30 of the first. What the wrapper
inherits and cannot answer: line 11 of the first, which sets what SB3's constructor would.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnvWrapper

from conformance.specimens.public_adapters.walks import Walks


class World:
    """A world of PettingZoo with two agents, whose episodes end together."""

    agents = ("left", "right")

    def __init__(self) -> None:
        self._walks = Walks(len(self.agents))
        self._walks.share(0)

    def reset(self, seed: int | None = None) -> Any:
        if seed is not None:
            self._walks.share(seed)
        self._walks.reset()
        starts = {agent: {"start": float(start)} for agent, start in self._places()}
        return self._by_agent(self._walks.obs), starts

    def step(self, actions: dict[str, Any]) -> Any:
        self._walks.move([actions[agent] for agent in self.agents])
        over = self._walks.terminated.any()
        flags = {agent: bool(over) for agent in self.agents}
        cut = self._by_agent([bool(late) for late in self._walks.truncated])
        infos = {agent: {"place": float(place)} for agent, place in self._places()}
        rewards = self._by_agent(self._walks.rewards)
        return self._by_agent(self._walks.obs), rewards, flags, cut, infos

    def _places(self) -> Any:
        return zip(self.agents, self._walks.place, strict=True)

    def _by_agent(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.agents, values, strict=True))


class MarkovVectorEnv:
    """The agents of a world as rows."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.num_envs = len(world.agents)

    def reset(self) -> Any:
        obs, infos = self.world.reset()
        return np.stack(list(obs.values())), list(infos.values())

    def step(self, actions: Any) -> Any:
        obs, rewards, terms, truncs, infos = self.world.step(
            dict(zip(self.world.agents, actions, strict=True))
        )
        over = all(terms[agent] or truncs[agent] for agent in self.world.agents)
        if over:
            for agent, last in obs.items():
                infos[agent]["terminal_observation"] = last
        batch = np.stack(list(obs.values()))
        reset_infos: list[dict[str, Any]] = [{} for _ in self.world.agents]
        if over:
            batch, reset_infos = self.reset()
        together = [a | b for a, b in zip(infos.values(), reset_infos, strict=True)]
        flags = (np.array(list(flag.values()), np.uint8) for flag in (terms, truncs))
        return batch, np.array(list(rewards.values()), np.float32), *flags, together


class ConcatVecEnv:
    """Several worlds one after the other."""

    render_mode = None

    def __init__(self, worlds: int) -> None:
        self.vec_envs = [MarkovVectorEnv(World()) for _ in range(worlds)]
        self.num_envs = sum(env.num_envs for env in self.vec_envs)
        self.observation_space = Walks.observation_space()
        self.action_space = Walks.action_space()

    def reset(self) -> Any:
        obs, infos = zip(*(env.reset() for env in self.vec_envs), strict=True)
        return np.concatenate(obs), [info for of_world in infos for info in of_world]

    def step_async(self, actions: Any) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        first, results = 0, []
        for env in self.vec_envs:
            results.append(env.step(self._actions[first : first + env.num_envs]))
            first += env.num_envs
        *arrays, infos = zip(*results, strict=True)
        return *map(np.concatenate, arrays), [info for of_world in infos for info in of_world]

    def render(self) -> Any:
        return None

    def close(self) -> None:
        """Keep nothing open."""

    def env_is_wrapped(self, wrapper_class: Any) -> list[bool]:
        return [False] * self.num_envs


class SB3VecEnvWrapper(VecEnvWrapper):
    """SuperSuit's wrapper for SB3, around what is no `VecEnv`."""

    def __init__(self, venv: Any) -> None:
        self.venv = venv
        self.num_envs = venv.num_envs
        self.observation_space = venv.observation_space
        self.action_space = venv.action_space
        self.render_mode = venv.render_mode
        self.reset_infos: list[dict[str, Any]] = []

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self.seed(seed)
        given: Any = self.venv.reset()
        obs, self.reset_infos = given
        return obs

    def step_wait(self) -> Any:
        result: Any = self.venv.step_wait()
        obs, rewards, terminated, truncated, infos = result
        dones = np.array([terminated[i] or truncated[i] for i in range(len(terminated))])
        return obs, rewards, dones, infos

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
        return self.venv.env_is_wrapped(wrapper_class)

    def getattr_recursive(self, name: str) -> Any:
        raise AttributeError(name)

    def getattr_depth_check(self, name: str, already_found: bool) -> Any:
        return None

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        value = self.venv.get_attr(attr_name)
        return [value] * self.num_envs if attr_name == "render_mode" else value

    def render(self, mode: str | None = None) -> Any:
        warnings.warn("a mode cannot be chosen here", stacklevel=2)
        return self.venv.render()
