"""What a value function learns when the end of an episode is reported wrongly.

A walker starts between 0 and 1 and moves to the right, 0.05 in each step, up to 1. The reward is
its place. Nothing ends the walk; after 10 steps the episode is truncated. So the value of a place
is known exactly, and PPO's value function can be compared with it. Three vector environments differ
only in what they report at the truncation:

- correct: `terminal_observation` is the last place, `TimeLimit.truncated` is True;
- first observation: `terminal_observation` is the first observation of the next episode;
- no flag: `TimeLimit.truncated` is missing, so that a truncation counts as an end.

    python docs/examples/value_of_truncated_states.py
    python docs/examples/value_of_truncated_states.py --seeds 1 --plot values.svg
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.figure import Figure
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

import sb3compat

GAMMA = 0.9
STRIDE = 0.05
STEPS_IN_EPISODE = 10
PLACES = np.linspace(0, 1, 41, dtype=np.float32)
# Of the figure: can be read on white and on black.
COLOURED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
STYLE = dict.fromkeys(COLOURED, "gray")

Values = npt.NDArray[np.float64]


class Walk(gym.Env[Any, Any]):
    """To the right: there is no choice. Rewards are scaled so that values are at most 1."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = self.np_random.uniform(0, 1)
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self.place = min(1.0, self.place + STRIDE)
        return self._observation(), (1 - GAMMA) * self.place, False, False, {}

    def _observation(self) -> Any:
        return np.array([self.place], np.float32)


class FirstObservation(VecEnvWrapper):
    """The mistake of many hand-written adapters: the reset has overwritten the last observation."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        for row in np.flatnonzero(dones):
            infos[row]["terminal_observation"] = np.asarray(observations)[row]
        return observations, rewards, dones, infos


class NoFlag(VecEnvWrapper):
    """Another one: terminated and truncated are merged, and nothing else is said."""

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            del info["TimeLimit.truncated"]
        return observations, rewards, dones, infos


def make_env() -> gym.Env[Any, Any]:
    return gym.wrappers.TimeLimit(Walk(), STEPS_IN_EPISODE)


def correct() -> VecEnv:
    return sb3compat.to_sb3(gym.vector.SyncVectorEnv([make_env] * 16))


VARIANTS = {
    "correct": correct,
    "first observation": lambda: FirstObservation(correct()),
    "no flag": lambda: NoFlag(correct()),
}


def true_values() -> Values:
    """The discounted sum of the rewards from each place on, without end."""
    steps = np.arange(1, 400)
    rewards = (1 - GAMMA) * np.minimum(1, PLACES[:, None] + STRIDE * steps)
    values: Values = rewards @ (GAMMA ** (steps - 1))
    return values


def learned_values(variant: str, seed: int, timesteps: int) -> Values:
    """The values that PPO learns in this variant."""
    model = PPO(
        "MlpPolicy", VARIANTS[variant](), n_steps=64, batch_size=256, gamma=GAMMA,
        learning_rate=1e-3, seed=seed, device="cpu",
    )  # fmt: skip
    model.learn(timesteps)
    with torch.no_grad():
        return model.policy.predict_values(torch.as_tensor(PLACES[:, None])).numpy()[:, 0]


def plot(values: dict[str, list[Values]], path: str) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        axes.plot(PLACES, true_values(), "--", color="gray", label="true value")
        colors = ("tab:blue", "tab:orange", "tab:red")
        for (name, runs), color in zip(values.items(), colors, strict=True):
            axes.plot(PLACES, np.mean(runs, 0), color=color, label=name)
            band = np.min(runs, 0), np.max(runs, 0)
            axes.fill_between(PLACES, *band, color=color, alpha=0.2, lw=0)
        axes.set(
            title=f"Value function of PPO, mean and range of {len(values['correct'])} seeds",
            xlabel="place", ylabel="value", ylim=(0, 1.05),
        )  # fmt: skip
        axes.legend(framealpha=0)
        axes.grid(alpha=0.3)
        figure.savefig(path, metadata={"Date": None}, transparent=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--timesteps", type=int, default=40_960)
    parser.add_argument("--plot", default="value_of_truncated_states.svg")
    args = parser.parse_args()
    torch.set_num_threads(1)
    values = {
        name: [learned_values(name, seed, args.timesteps) for seed in range(args.seeds)]
        for name in VARIANTS
    }
    plot(values, args.plot)
    for name, runs in values.items():
        errors = [float(np.mean(run - true_values())) for run in runs]
        shown = ", ".join(f"{error:+.3f}" for error in errors)
        print(f"{name:>17}: mean error {np.mean(errors):+.3f} (seeds: {shown})")


if __name__ == "__main__":
    main()
