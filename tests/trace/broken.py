"""Environments that are wrong at the ends of episodes, and the check that a trace names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

Change = Callable[[Any, Any, Any, Any], None]


class Vec:
    """A `VecEnv` by its methods, whose infos are changed."""

    def __init__(self, change: Change) -> None:
        self.envs = [gym.make("CartPole-v1") for _ in range(2)]
        self.num_envs = 2
        self.observation_space = self.envs[0].observation_space
        self.action_space = self.envs[0].action_space
        self._change = change
        self._seeds: list[int | None] = [None, None]

    def seed(self, seed: int) -> None:
        self._seeds = [seed, seed + 1]

    def reset(self) -> Any:
        return np.stack(
            [env.reset(seed=s)[0] for env, s in zip(self.envs, self._seeds, strict=False)]
        )

    def step(self, actions: Any) -> Any:
        obs, rewards, dones, infos = [], [], [], []
        for env, action in zip(self.envs, actions, strict=False):
            last, reward, terminated, truncated, info = env.step(action)
            shown = last
            info = {**info, "TimeLimit.truncated": truncated and not terminated}
            if terminated or truncated:
                info["terminal_observation"] = last
                shown, _ = env.reset()
            self._change(info, shown, last, terminated or truncated)
            obs.append(shown)
            rewards.append(reward)
            dones.append(terminated or truncated)
            infos.append(info)
        return np.stack(obs), np.float32(rewards), np.array(dones), infos

    def close(self) -> None:
        pass


def no_terminal(info: Any, shown: Any, last: Any, done: Any) -> None:
    info.pop("terminal_observation", None)


def always_terminal(info: Any, shown: Any, last: Any, done: Any) -> None:
    info["terminal_observation"] = last


def first_as_terminal(info: Any, shown: Any, last: Any, done: Any) -> None:
    if done:
        info["terminal_observation"] = shown


def outside(info: Any, shown: Any, last: Any, done: Any) -> None:
    if done:
        info["terminal_observation"] = last[:2]


def no_flag(info: Any, shown: Any, last: Any, done: Any) -> None:
    del info["TimeLimit.truncated"]


class Wrong(VectorWrapper):
    """A `VectorEnv` whose results are changed."""

    def __init__(self, mode: AutoresetMode, change: Callable[..., Any]) -> None:
        super().__init__(SyncVectorEnv([lambda: gym.make("CartPole-v1")], autoreset_mode=mode))
        self._change = change
        self._over = False

    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = self.env.step(actions)
        reset, self._over = self._over, bool(terminations[0])
        return self._change(obs, rewards, terminations, truncations, infos, reset)


def no_final(obs: Any, r: Any, t: Any, u: Any, infos: Any, reset: bool) -> Any:
    return obs, r, t, u, {k: v for k, v in infos.items() if "final" not in k}


def first_as_final(obs: Any, r: Any, t: Any, u: Any, infos: Any, reset: bool) -> Any:
    return obs, r, t, u, {**infos, "final_obs": obs} if t[0] else infos


def final_outside(obs: Any, r: Any, t: Any, u: Any, infos: Any, reset: bool) -> Any:
    return obs, r, t, u, {**infos, "final_obs": np.zeros((1, 2))} if t[0] else infos


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


SAME, NEXT = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP
BROKEN: list[tuple[Callable[[], Any], str]] = [
    (lambda: Vec(no_terminal), "terminal_observation_iff_done"),
    (lambda: Vec(always_terminal), "terminal_observation_iff_done"),
    (lambda: Vec(first_as_terminal), "terminal_observation_not_reset_obs"),
    (lambda: Vec(outside), "terminal_observation_in_space"),
    (lambda: Vec(no_flag), "truncated_flag_present"),
    (lambda: Wrong(SAME, no_final), "final_obs_present"),
    (lambda: Wrong(SAME, first_as_final), "obs_is_reset_obs"),
    (lambda: Wrong(SAME, final_outside), "final_obs_in_space"),
    (lambda: Wrong(NEXT, reward_at_reset), "reset_step_reward_zero"),
    (lambda: Wrong(NEXT, ended_at_reset), "reset_step_flags_false"),
    (lambda: Early(NEXT, no_final), "done_step_returns_final_obs"),
]
