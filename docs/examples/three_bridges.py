"""Do wrong ends of episodes harm training? PPO and SAC on Pendulum behind three bridges.

Pendulum never terminates: a time limit truncates each episode after 200 steps. Three vector
environments differ only in what they report there:

- exact: what `to_sb3` reports, which is what `DummyVecEnv` reports;
- first observation: `terminal_observation` is the first observation of the next episode;
- no flag: `TimeLimit.truncated` is missing, so that a truncation counts as a termination.

Each run notes the returns of its episodes, and at its end how far the learned values are from the
discounted rewards that the policy earns in a Pendulum without a time limit.

    python docs/examples/three_bridges.py --json docs/bridges.json --plot docs/bridges.svg

It takes about 30 minutes on one core. Each run is added to the JSON file when it is done, and runs
that are there already are left out: stop it when you like, and start it again. `--seeds 0` only
draws.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.figure import Figure
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize
from value_of_truncated_states import STYLE, FirstObservation, NoFlag

import sb3compat

ENV_ID = "Pendulum-v1"
STEPS_IN_EPISODE = 200
GAMMA = 0.99
# Discounted, what comes after so many steps is less than a thousandth.
HORIZON = 700

Array = npt.NDArray[np.float64]


def exact(num_envs: int) -> VecEnv:
    make = lambda: gym.make(ENV_ID)  # noqa: E731
    return sb3compat.to_sb3(gym.vector.SyncVectorEnv([make] * num_envs))


BRIDGES: dict[str, Callable[[int], VecEnv]] = {
    "exact": exact,
    "first observation": lambda num_envs: FirstObservation(exact(num_envs)),
    "no flag": lambda num_envs: NoFlag(exact(num_envs)),
}


LABELS = {
    "exact": "exact (to_sb3)",
    "first observation": "first observation of the next episode",
    "no flag": "no TimeLimit.truncated",
}


def make_ppo(env: VecEnv, seed: int) -> Any:
    """Rewards are scaled: the values would be some -500, far from what a network begins with."""
    scaled = VecNormalize(env, norm_obs=False, gamma=GAMMA)
    return PPO(
        "MlpPolicy", scaled, n_steps=64, batch_size=256, learning_rate=1e-3, gamma=GAMMA,
        seed=seed, device="cpu",
    )  # fmt: skip


def make_sac(env: VecEnv, seed: int) -> Any:
    """The settings of RL Zoo for Pendulum, with networks as small as PPO's."""
    return SAC(
        "MlpPolicy", env, learning_rate=1e-3, gradient_steps=-1, gamma=GAMMA, seed=seed,
        policy_kwargs={"net_arch": [64, 64]}, device="cpu",
    )  # fmt: skip


# How an algorithm is made, its rows and timesteps.
ALGORITHMS: dict[str, tuple[Callable[[VecEnv, int], Any], int, int]] = {
    "PPO": (make_ppo, 16, 102_400),
    "SAC": (make_sac, 4, 8_000),
}


class Returns(BaseCallback):
    """Notes the mean return of the episodes that end in the same step, which here is all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.curve: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        ended = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        if ended:
            self.curve.append((self.num_timesteps, round(float(np.mean(ended)), 1)))
        return True


def run(algorithm: str, bridge: str, seed: int, timesteps: int | None = None) -> dict[str, Any]:
    """Train once; the curve of returns, the mean learned value, and the mean true one."""
    make, num_envs, default = ALGORITHMS[algorithm]
    env = VecMonitor(BRIDGES[bridge](num_envs))
    model = make(env, seed)
    returns = Returns()
    model.learn(timesteps or default, callback=returns)
    env.close()
    learned, true = values(model, 1_000 + seed)
    return {"curve": returns.curve, "learned": round(learned, 2), "true": round(true, 2)}


def values(model: Any, seed: int, rows: int = 32) -> tuple[float, float]:
    """The mean value by the critic, and what the policy earns, over the states of an episode."""
    make = lambda: gym.make(ENV_ID, max_episode_steps=-1)  # noqa: E731
    env = sb3compat.to_sb3(gym.vector.SyncVectorEnv([make] * rows))
    env.seed(seed)
    observations: Any = env.reset()
    learned, rewards = [], []
    for _ in range(STEPS_IN_EPISODE + HORIZON):
        value, entropy, actions = look(model, observations)
        observations, reward, _, _ = env.step(actions)
        learned.append(value)
        # SAC's values count the entropy of later steps, and not that of this one.
        rewards.append((reward, entropy))
    env.close()
    after: Array = np.zeros(rows)
    true = []
    for reward, entropy in reversed(rewards):
        after = reward + GAMMA * after
        true.append(after)
        after = after + entropy
    return float(np.mean(learned[:STEPS_IN_EPISODE])), float(np.mean(true[HORIZON:]))


@torch.no_grad()
def look(model: Any, observations: Any) -> tuple[Array, Array, Array]:
    """Sampled actions, their value by the critic, and the bonus for entropy (PPO has none)."""
    seen = torch.as_tensor(observations)
    on_policy = isinstance(model, PPO)
    if on_policy:
        drawn, value, _ = model.policy(seen)
        space: Any = model.action_space
        rewards: Any = model.env
        actions = np.clip(drawn.numpy(), space.low, space.high)
        scale = np.sqrt(rewards.ret_rms.var + rewards.epsilon)
        return value.numpy()[:, 0] * scale, np.zeros(len(actions)), actions
    squashed, log_prob = model.actor.action_log_prob(seen)
    value = torch.cat(model.critic(seen, squashed), 1).min(1).values
    bonus = -torch.exp(model.log_ent_coef) * log_prob
    return value.numpy(), bonus.numpy(), model.policy.unscale_action(squashed.numpy())


def complete(runs: dict[str, Any], algorithm: str, bridge: str) -> list[dict[str, Any]]:
    """The runs of the seeds that every bridge of this algorithm has by now."""
    seeds = 0
    while all(f"{algorithm}, {name}, seed {seeds}" in runs for name in BRIDGES):
        seeds += 1
    return [runs[f"{algorithm}, {bridge}, seed {seed}"] for seed in range(seeds)]


def table(runs: dict[str, Any]) -> str:
    """For each algorithm and bridge, the mean and the range over the seeds, in Markdown."""
    lines = ["| | seeds | return | value, learned | value, true |", "|---|--:|--:|--:|--:|"]
    for algorithm in ALGORITHMS:
        for bridge in BRIDGES:
            found = complete(runs, algorithm, bridge)
            if found:
                # Of the last fifth of the training.
                last = len(found[0]["curve"]) // 5
                returns = [np.mean([y for _, y in run["curve"][-last:]]) for run in found]
                columns = returns, [run["learned"] for run in found], [run["true"] for run in found]
                cells = " | ".join(map(spread, columns))
                lines.append(f"| {algorithm}, {bridge} | {len(found)} | {cells} |")
    return "\n".join(lines)


def spread(numbers: Sequence[float]) -> str:
    return f"{np.mean(numbers):.0f} ({min(numbers):.0f} to {max(numbers):.0f})"


def plot(runs: dict[str, Any], path: Path) -> None:
    """The mean return over the seeds, in a band from the lowest to the highest."""
    with mpl.rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": "sb3compat"}):
        shown = [name for name in ALGORITHMS if complete(runs, name, "exact")]
        figure = Figure(figsize=(9.4, 3.8), layout="constrained")
        panels = figure.subplots(1, len(shown), squeeze=False)[0]
        for axes, algorithm in zip(panels, shown, strict=True):
            for bridge, color in zip(BRIDGES, ("tab:blue", "tab:orange", "tab:red"), strict=True):
                found = complete(runs, algorithm, bridge)
                steps = [step for step, _ in found[0]["curve"]]
                returns = [[y for _, y in run["curve"]] for run in found]
                axes.plot(steps, np.mean(returns, 0), color=color, label=LABELS[bridge])
                band = np.min(returns, 0), np.max(returns, 0)
                axes.fill_between(steps, *band, color=color, alpha=0.2, lw=0)
            seeds = "1 seed" if len(found) == 1 else f"{len(found)} seeds"
            axes.set_title(f"{algorithm} on Pendulum: mean and range of {seeds}", fontsize=10)
            axes.set(xlabel="environment steps", ylabel="return of an episode")
            axes.grid(alpha=0.3)
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(path, metadata={"Date": None}, transparent=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, help="0: only draw what is there")
    parser.add_argument("--json", type=Path, default=Path("bridges.json"))
    parser.add_argument("--plot", type=Path, default=Path("bridges.svg"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    runs = json.loads(args.json.read_text()) if args.json.exists() else {}
    for algorithm, seed, bridge in product(ALGORITHMS, range(args.seeds), BRIDGES):
        name = f"{algorithm}, {bridge}, seed {seed}"
        if name not in runs:
            runs[name] = run(algorithm, bridge, seed)
            text = ",\n".join(f"{json.dumps(name)}: {json.dumps(runs[name])}" for name in runs)
            args.json.write_text(f"{{\n{text}\n}}\n")
            print(name, runs[name]["curve"][-1], flush=True)
    plot(runs, args.plot)
    print(table(runs))


if __name__ == "__main__":
    main()
