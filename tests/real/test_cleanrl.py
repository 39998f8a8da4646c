"""A single-file training loop as CleanRL writes them: DQN in plain torch.

CleanRL's scripts are no package. This calls the environments as its scripts do: `SyncVectorEnv`,
`RecordEpisodeStatistics` around each sub-environment, `infos["final_obs"]` for the successor of a
truncated state, `infos["final_info"]["episode"]` for the statistics. PPO is in
`docs/examples/ppo_single_file.py`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.profiles import some
from tests.real.environments import LIMIT, Make, makers, same_results, torch, vector_envs

buffers: Any = pytest.importorskip("stable_baselines3.common.buffers")
nn: Any = torch.nn


def recorded(fns: list[Make]) -> list[Make]:
    return [lambda fn=fn: gym.wrappers.RecordEpisodeStatistics(fn()) for fn in fns]


def layers(*sizes: int) -> Any:
    parts: list[Any] = []
    for inner, outer in pairwise(sizes):
        parts += [nn.Linear(inner, outer), nn.Tanh()]
    return nn.Sequential(*parts[:-1])


def finished(infos: dict[str, Any]) -> list[tuple[float, int]]:
    """Returns and lengths of the episodes that ended in this step, where CleanRL logs them."""
    info = infos.get("final_info", infos)
    if "episode" not in info:
        return []
    rows = np.flatnonzero(info["_episode"])
    return [(float(info["episode"]["r"][i]), int(info["episode"]["l"][i])) for i in rows]


class Replay:
    """What `dqn.py` puts into SB3's replay buffer, and when."""

    def __init__(self, envs: Any) -> None:
        self.envs, self.next_step = envs, envs.metadata["autoreset_mode"].name == "NEXT_STEP"
        self.buffer = buffers.ReplayBuffer(
            10_000,
            envs.single_observation_space,
            envs.single_action_space,
            "cpu",
            n_envs=envs.num_envs,
            handle_timeout_termination=False,
        )
        self.obs, _ = envs.reset(seed=1)
        self.resetting = np.zeros(envs.num_envs, bool)
        self.episodes: list[Any] = []

    def step(self, actions: Any) -> None:
        next_obs, rewards, terminations, truncations, infos = self.envs.step(actions)
        self.episodes += finished(infos)
        successors = next_obs.copy()
        for i, truncated in enumerate(truncations):
            if truncated and not self.next_step:
                successors[i] = infos["final_obs"][i]
        if not self.resetting.any():  # else a row has no transition: its step was its reset
            self.buffer.add(
                self.obs, successors, actions, rewards, terminations, [{}] * self.envs.num_envs
            )
        self.resetting = self.next_step & (terminations | truncations)
        self.obs = next_obs

    def sample(self) -> Any:
        return self.buffer.sample(64)


def dqn(envs: Any, steps: int = 300) -> Any:
    size, actions = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    net, target = layers(size, 120, 84, actions), layers(size, 120, 84, actions)
    target.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), lr=2.5e-4)
    rng = np.random.default_rng(1)
    replay = Replay(envs)
    for step in range(steps):
        if rng.random() < max(0.7, 1 - step / 150):
            chosen = rng.integers(actions, size=envs.num_envs)
        else:
            chosen = net(torch.Tensor(replay.obs)).argmax(1).numpy()
        replay.step(chosen)
        if step > 50 and step % 4 == 0:
            data = replay.sample()
            with torch.no_grad():
                best = target(data.next_observations).max(1).values
                wanted = data.rewards.flatten() + 0.99 * best * (1 - data.dones.flatten())
            loss = nn.functional.mse_loss(
                wanted, net(data.observations).gather(1, data.actions).squeeze()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 50 == 0:
            target.load_state_dict(net.state_dict())
    return {"net": net, "episodes": replay.episodes}


@pytest.mark.parametrize("mode", some(["SameStep", "NextStep"]))
def test_dqn_learns_the_same(mode: str) -> None:
    result = same_results(vector_envs(recorded(makers("CartPole-v1", 2)), mode), dqn)
    # Some episodes were terminated, and some truncated.
    lengths = [length for _, length in result["episodes"]]
    assert min(lengths) < LIMIT == max(lengths)
