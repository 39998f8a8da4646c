"""Environments that are wrong at the ends of episodes, and the check that a trace names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

import sb3compat

SAME, NEXT = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP


def cartpole() -> Any:
    return gym.make("CartPole-v1")


class Vec:
    """A `VecEnv` by its methods; `change` gets the info, observation and end of each row."""

    num_envs = 2

    def __init__(self, change: Callable[[Any, Any, bool], object]) -> None:
        self._env = sb3compat.to_sb3(SyncVectorEnv([cartpole] * 2))
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space
        self.seed, self.reset, self.close = self._env.seed, self._env.reset, self._env.close
        self.step_async = self._env.step_async
        self._change = change

    def step(self, actions: Any) -> Any:
        self.step_async(actions)
        return self.step_wait()

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self._env.step_wait()
        for info, row, done in zip(infos, obs, dones, strict=True):
            self._change(info, row, bool(done))
        return obs, rewards, dones, infos


def terminal(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any, bool], None]:
    """Changes a terminal observation."""

    def changed(info: Any, obs: Any, done: bool) -> None:
        if done:
            info["terminal_observation"] = change(info["terminal_observation"], obs)

    return changed


def make_env() -> Vec:
    """Gives no terminal observations."""
    return Vec(lambda info, obs, done: info.pop("terminal_observation", None))


class Wrong(VectorWrapper):
    """A `VectorEnv`; `change` gets the results of a step, and whether it resets the row."""

    def __init__(
        self, mode: AutoresetMode, change: Callable[..., Any], make: Any = cartpole
    ) -> None:
        super().__init__(SyncVectorEnv([make], autoreset_mode=mode))
        self._change = change
        self._over = False

    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = self.env.step(actions)
        reset, self._over = self._over, bool(terminations[0])
        return self._change(obs, rewards, terminations, truncations, infos, reset)


def final_obs(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Changes a final observation; None takes it away."""

    def changed(obs: Any, r: Any, t: Any, u: Any, infos: Any, reset: bool) -> Any:
        kept = {key: value for key, value in infos.items() if "final" not in key}
        final = change(obs) if t[0] else None
        return obs, r, t, u, kept if final is None else {**infos, "final_obs": final}

    return changed


def reward_at_reset(obs: Any, r: Any, t: Any, u: Any, infos: Any, reset: bool) -> Any:
    return obs, r + 1, t, u, infos


def ended_at_reset(obs: Any, r: Any, t: Any, u: Any, infos: Any, reset: bool) -> Any:
    return obs, r, t, u | reset, infos


class Early(Wrong):
    """Shows the first observation of the next episode both when it ends and when it is reset."""

    _next: Any = None

    def step(self, actions: Any) -> Any:
        if self._over:
            self._over = False
            return self._next
        obs, rewards, terminations, truncations, infos = self.env.step(actions)
        if terminations[0]:
            self._over = True
            self._next = self.env.step(actions)
            obs = self._next[0]
        return obs, rewards, terminations, truncations, infos


class InParts(gym.ObservationWrapper[Any, Any, Any]):
    """Its observations are a dict."""

    def __init__(self) -> None:
        super().__init__(cartpole())
        whole = self.env.observation_space
        self.observation_space = gym.spaces.Dict({"x": whole, "y": whole})

    def observation(self, observation: Any) -> Any:
        return {"x": observation, "y": observation}


def same_parts(*same: str) -> Any:
    """A final observation that equals the first one of the next episode in some parts."""
    change = final_obs(lambda obs: {key: obs[key] * (key in same) for key in obs})
    return Wrong(SAME, change, InParts)


BROKEN: list[tuple[Callable[[], Any], str]] = [
    (make_env, "terminal_observation_iff_done"),
    (
        lambda: Vec(lambda info, obs, done: info.setdefault("terminal_observation", obs)),
        "terminal_observation_iff_done",
    ),
    (lambda: Vec(terminal(lambda last, obs: obs)), "terminal_observation_not_reset_obs"),
    (lambda: Vec(terminal(lambda last, obs: last[:2])), "terminal_observation_in_space"),
    (
        lambda: Vec(lambda info, obs, done: info.pop("TimeLimit.truncated")),
        "truncated_flag_present",
    ),
    (lambda: Wrong(SAME, final_obs(lambda obs: None)), "final_obs_present"),
    (lambda: Wrong(SAME, final_obs(lambda obs: obs)), "final_obs_is_last"),
    (lambda: same_parts("x", "y"), "final_obs_is_last"),
    (lambda: same_parts("x"), ""),
    (lambda: Wrong(SAME, final_obs(lambda obs: np.zeros((1, 2)))), "final_obs_in_space"),
    (lambda: Wrong(NEXT, reward_at_reset), "reset_step_reward_zero"),
    (lambda: Wrong(NEXT, ended_at_reset), "reset_step_flags_false"),
    (lambda: Early(NEXT, ended_at_reset), "done_step_returns_final_obs"),
]
