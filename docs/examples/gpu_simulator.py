"""What `to_sb3` costs on a simulator whose arrays are torch's, on a GPU or on the CPU.

The simulator moves n points at once, in the way of Isaac Lab and ManiSkill: torch tensors in and
out, SAME_STEP autoreset, last observations in `final_obs`. Three things are timed in turn: a step
of the simulator; the same and a bare copy of its observations, rewards and flags to the host, which
every bridge to SB3 has to make; and a step through `to_sb3`.

    python docs/examples/gpu_simulator.py --device cuda --num-envs 1024 16384
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

import sb3compat

FEATURES, ACTIONS, LIMIT = 48, 12, 200


class Points(VectorEnv[Any, Any, Any]):
    """Points that are pushed about, all in one tensor; an episode is truncated after 200 steps."""

    def __init__(self, num_envs: int, device: str = "cpu") -> None:
        self.num_envs, self.device = num_envs, torch.device(device)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32)
        self.single_action_space = gym.spaces.Box(-1, 1, (ACTIONS,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.generator = torch.Generator(self.device)
        self.places = torch.zeros(num_envs, FEATURES, device=self.device)
        self.time = torch.zeros(num_envs, dtype=torch.int64, device=self.device)

    def _new_places(self) -> torch.Tensor:
        return torch.randn(self.num_envs, FEATURES, generator=self.generator, device=self.device)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if seed is not None:
            self.generator.manual_seed(seed)
        self.places = self._new_places()
        # Episodes end at different times, as they do in training.
        self.time = torch.arange(self.num_envs, device=self.device) % LIMIT
        return self.places.clone(), {}

    def step(self, actions: Any) -> Any:
        pushes = torch.as_tensor(actions, device=self.device)
        self.places = 0.99 * self.places
        self.places[:, :ACTIONS] += 0.1 * pushes
        self.time += 1
        rewards = -self.places.square().mean(1)
        truncated = self.time >= LIMIT
        terminated = torch.zeros_like(truncated)
        last = self.places
        self.places = torch.where(truncated[:, None], self._new_places(), last)
        self.time = torch.where(truncated, 0, self.time)
        infos = {"final_obs": last, "_final_obs": truncated}
        return self.places.clone(), rewards, terminated, truncated, infos


def copied(result: Any) -> Any:
    """The observations, rewards and flags on the host."""
    return [tensor.cpu().numpy() for tensor in result[:4]]


def microseconds(num_envs: int, device: str, rounds: int) -> list[float]:
    """The median time of a step: of the simulator, with the bare copy, and through `to_sb3`."""
    bare, copying, adapted = (Points(num_envs, device) for _ in range(3))
    vec_env = sb3compat.to_sb3(adapted)
    actions = np.random.default_rng(0).uniform(-1, 1, (num_envs, ACTIONS)).astype(np.float32)
    for env in (bare, copying):
        env.reset(seed=0)
    vec_env.seed(0)
    vec_env.reset()

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    steps = (
        lambda: bare.step(actions),
        lambda: copied(copying.step(actions)),
        lambda: vec_env.step(actions),
    )
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, taken in zip(steps, times, strict=True):
            start = time.perf_counter()
            for _ in range(10):
                step()
            wait()
            taken.append((time.perf_counter() - start) / 10 * 1e6)
    return [statistics.median(taken[1:]) for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of to_sb3 on a torch simulator.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1024])
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    print(f"µs per step on {args.device}:")
    for n in args.num_envs:
        simulator, copy, adapted = microseconds(n, args.device, args.rounds)
        print(
            f"  n = {n:>6}: simulator {simulator:>9,.0f}, with a bare copy to the host "
            f"{copy:>9,.0f}, through to_sb3 {adapted:>9,.0f}"
        )


if __name__ == "__main__":
    main()
