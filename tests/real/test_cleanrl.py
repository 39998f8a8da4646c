"""Single-file training loops as CleanRL writes them: PPO, DQN and SAC in plain torch.

CleanRL's scripts are no package. These call the environments as its scripts do: `SyncVectorEnv`,
`RecordEpisodeStatistics` around each sub-environment, `infos["final_obs"]` for the successor of a
truncated state, `infos["final_info"]["episode"]` for the statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.profiles import some
from tests.real.environments import LIMIT, Make, makers, same_results, torch, vector_envs

buffers: Any = pytest.importorskip("stable_baselines3.common.buffers")
nn: Any = torch.nn
F = nn.functional
distributions = torch.distributions

MODES = some(["SameStep", "NextStep"])


def recorded(fns: list[Make], wrap: Callable[[Any], Any] = lambda env: env) -> list[Make]:
    return [lambda fn=fn: wrap(gym.wrappers.RecordEpisodeStatistics(fn())) for fn in fns]  # type: ignore[misc]


def normalised(env: Any) -> Any:
    """The wrappers of `ppo_continuous_action.py`."""
    env = gym.wrappers.ClipAction(gym.wrappers.FlattenObservation(env))
    env = gym.wrappers.NormalizeObservation(env)
    space = gym.spaces.Box(-10, 10, env.observation_space.shape, np.float64)
    env = gym.wrappers.TransformObservation(env, lambda obs: np.clip(obs, -10, 10), space)
    env = gym.wrappers.NormalizeReward(env, gamma=0.99)
    return gym.wrappers.TransformReward(env, lambda reward: np.clip(float(reward), -10, 10))


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


class Agent(nn.Module):  # type: ignore[misc]
    def __init__(self, envs: Any, *, continuous: bool) -> None:
        super().__init__()
        size = int(np.prod(envs.single_observation_space.shape))
        self.continuous = continuous
        actions = envs.single_action_space.shape[0] if continuous else envs.single_action_space.n
        self.critic = layers(size, 64, 64, 1)
        self.actor = layers(size, 64, 64, int(actions))
        self.log_std = nn.Parameter(torch.zeros(1, int(actions)))

    def evaluate(self, obs: Any, action: Any = None) -> Any:
        out = self.actor(obs)
        if self.continuous:
            dist = distributions.Normal(out, self.log_std.expand_as(out).exp())
        else:
            dist = distributions.Categorical(logits=out)
        action = dist.sample() if action is None else action
        log_prob, entropy = dist.log_prob(action), dist.entropy()
        if self.continuous:
            log_prob, entropy = log_prob.sum(1), entropy.sum(1)
        return action, log_prob, entropy, self.critic(obs).squeeze(-1)


def ppo(envs: Any, *, continuous: bool, iterations: int = 6, steps: int = 32) -> Any:
    n = envs.num_envs
    agent = Agent(envs, continuous=continuous)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    episodes: list[Any] = []
    first, _ = envs.reset(seed=1)
    next_obs, next_done = torch.Tensor(first), torch.zeros(n)
    for _ in range(iterations):
        kept: dict[str, list[Any]] = {k: [] for k in ("obs", "act", "logp", "rew", "done", "val")}
        for _ in range(steps):
            with torch.no_grad():
                action, logp, _, value = agent.evaluate(next_obs)
            for key, part in zip(
                ("obs", "done", "act", "logp", "val"),
                (next_obs, next_done, action, logp, value),
                strict=True,
            ):
                kept[key].append(part)
            obs, reward, terminations, truncations, infos = envs.step(action.cpu().numpy())
            kept["rew"].append(torch.tensor(reward, dtype=torch.float32))
            next_obs = torch.Tensor(obs)
            next_done = torch.Tensor(np.logical_or(terminations, truncations))
            episodes += finished(infos)
        data = {key: torch.stack(parts) for key, parts in kept.items()}
        with torch.no_grad():
            last = agent.evaluate(next_obs)[3]
        advantages, running = torch.zeros_like(data["rew"]), torch.zeros(n)
        for t in reversed(range(steps)):
            alive = 1 - (next_done if t == steps - 1 else data["done"][t + 1])
            follow = last if t == steps - 1 else data["val"][t + 1]
            delta = data["rew"][t] + 0.99 * follow * alive - data["val"][t]
            advantages[t] = running = delta + 0.99 * 0.95 * alive * running
        returns = (advantages + data["val"]).flatten()
        flat = {key: data[key].flatten(0, 1) for key in ("obs", "act", "logp")}
        for _ in range(2):
            for batch in torch.randperm(n * steps).chunk(4):
                _, logp, entropy, value = agent.evaluate(flat["obs"][batch], flat["act"][batch])
                ratio = (logp - flat["logp"][batch]).exp()
                gain = advantages.flatten()[batch]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                clipped = torch.clamp(ratio, 0.8, 1.2)
                policy_loss = torch.max(-gain * ratio, -gain * clipped).mean()
                value_loss = 0.5 * (value - returns[batch]).pow(2).mean()
                loss = policy_loss - 0.01 * entropy.mean() + 0.5 * value_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return {"agent": agent, "episodes": episodes}


class Replay:
    """What `dqn.py` and `sac_continuous_action.py` put into SB3's replay buffer, and when."""

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
            loss = F.mse_loss(wanted, net(data.observations).gather(1, data.actions).squeeze())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 50 == 0:
            target.load_state_dict(net.state_dict())
    return {"net": net, "episodes": replay.episodes}


def sac(envs: Any, steps: int = 200) -> Any:
    size, width = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    scale = torch.tensor(envs.single_action_space.high)
    actor = layers(size, 64, 64, 2 * width)
    critics = nn.ModuleList([layers(size + width, 64, 64, 1) for _ in range(4)])
    for online, slow in zip(critics[:2], critics[2:], strict=True):
        slow.load_state_dict(online.state_dict())
    q_optimizer = torch.optim.Adam(critics[:2].parameters(), lr=1e-3)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)

    def act(obs: Any) -> tuple[Any, Any]:
        mean, log_std = actor(obs).chunk(2, -1)
        dist = distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = dist.rsample()
        log_prob = dist.log_prob(raw) - torch.log(scale * (1 - raw.tanh().pow(2)) + 1e-6)
        return raw.tanh() * scale, log_prob.sum(1, keepdim=True)

    def values(pair: Any, obs: Any, action: Any) -> list[Any]:
        return [critic(torch.cat([obs, action], 1)) for critic in pair]

    replay = Replay(envs)
    for step in range(steps):
        with torch.no_grad():
            actions, _ = act(torch.Tensor(replay.obs))
        replay.step(actions.numpy())
        if step < 50:
            continue
        data = replay.sample()
        with torch.no_grad():
            following, logp = act(data.next_observations)
            low = torch.min(*values(critics[2:], data.next_observations, following)) - 0.2 * logp
            wanted = data.rewards + (1 - data.dones) * 0.99 * low
        found = values(critics[:2], data.observations, data.actions)
        loss = F.mse_loss(found[0], wanted) + F.mse_loss(found[1], wanted)
        q_optimizer.zero_grad()
        loss.backward()
        q_optimizer.step()
        action, logp = act(data.observations)
        policy_loss = (
            0.2 * logp - torch.min(*values(critics[:2], data.observations, action))
        ).mean()
        actor_optimizer.zero_grad()
        policy_loss.backward()
        actor_optimizer.step()
        for online, slow in zip(critics[:2], critics[2:], strict=True):
            for new, old in zip(online.parameters(), slow.parameters(), strict=True):
                old.data.lerp_(new.data, 0.005)
    return {"actor": actor, "critics": critics, "episodes": replay.episodes}


def assert_both_endings(result: Any) -> None:
    """Some episodes were terminated, and some truncated."""
    lengths = [length for _, length in result["episodes"]]
    assert min(lengths) < LIMIT == max(lengths)


@pytest.mark.parametrize("mode", MODES)
def test_ppo_learns_the_same(mode: str) -> None:
    fns = recorded(makers("CartPole-v1", 4))
    result = same_results(vector_envs(fns, mode), lambda envs: ppo(envs, continuous=False))
    assert_both_endings(result)


@pytest.mark.parametrize("mode", MODES)
def test_ppo_with_continuous_actions_learns_the_same(mode: str) -> None:
    fns = recorded(makers("Pendulum-v1", 3), normalised)
    result = same_results(vector_envs(fns, mode), lambda envs: ppo(envs, continuous=True))
    assert len(result["episodes"]) > 10


@pytest.mark.parametrize("mode", MODES)
def test_dqn_learns_the_same(mode: str) -> None:
    fns = recorded(makers("CartPole-v1", 2))
    result = same_results(vector_envs(fns, mode), dqn)
    assert_both_endings(result)


@pytest.mark.parametrize("mode", MODES)
def test_sac_learns_the_same(mode: str) -> None:
    fns = recorded(makers("Pendulum-v1", 2))
    result = same_results(vector_envs(fns, mode), sac)
    assert len(result["episodes"]) > 10
