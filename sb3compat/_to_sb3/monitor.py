"""One environment for `make_vec_env`, monitored, made in this process or in a worker.

Workers import this module, so it imports neither SB3 nor torch: SB3's own `Monitor` would cost
every worker hundreds of megabytes.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from sb3compat._convert.types import (
    Action,
    Info,
    Kwargs,
    ResetResult,
    SingleEnv,
    StepResult,
    Value,
)

SUFFIX = "monitor.csv"


class EpisodeMonitor(gym.Wrapper[Any, Any, Any, Any]):
    """Adds `info["episode"]` at the end of each episode, and writes the files of SB3's `Monitor`.

    `env_is_wrapped` takes it for that class. SB3's `evaluate_policy` asks for the class, and
    without one evaluates the rewards and endings that wrappers outside of the monitor make.

    `info["episode"]` holds the return `r` (rounded to 6 digits), the length `l` and the seconds `t`
    since the monitor was made, as `stable_baselines3.common.monitor.Monitor` has them. SB3's
    `load_results` reads the files.

    Args:
        env: The environment.
        filename: Where to write; `.monitor.csv` is appended. None for no file.
        allow_early_resets: Whether an episode may be reset before it has ended.
        reset_keywords: Arguments of `reset` to write as well; `reset` then requires them.
        info_keywords: Info keys of the last step to write as well.
        override_existing: Whether to begin a new file; False appends to an existing one.

    Attributes:
        total_steps: The number of steps so far.
        episode_returns: The return of each episode that has ended.
        episode_lengths: The length of each episode that has ended.
        episode_times: When each episode ended, in seconds since the monitor was made.
    """

    stands_for = ("stable_baselines3.common.monitor", "Monitor")

    def __init__(
        self,
        env: SingleEnv,
        filename: str | None = None,
        allow_early_resets: bool = True,
        reset_keywords: Sequence[str] = (),
        info_keywords: Sequence[str] = (),
        override_existing: bool = True,
    ) -> None:
        super().__init__(env)
        self.allow_early_resets = allow_early_resets
        self.reset_keywords = tuple(reset_keywords)
        self.info_keywords = tuple(info_keywords)
        self._reset_info: Info = {}
        self._start = time.time()
        self._rewards: list[float] = []
        self._running = False
        self.total_steps = 0
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self.episode_times: list[float] = []
        self._file = None
        if filename is not None:
            path = Path(filename if filename.endswith(SUFFIX) else f"{filename}.{SUFFIX}")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w" if override_existing else "a", newline="\n")
            self._writer = csv.DictWriter(
                self._file, ("r", "l", "t", *self.reset_keywords, *self.info_keywords)
            )
            if override_existing:
                spec = None if env.spec is None else env.spec.id
                self._file.write(f"#{json.dumps({'t_start': self._start, 'env_id': str(spec)})}\n")
                self._writer.writeheader()
            self._file.flush()

    def reset(self, **kwargs: Value) -> ResetResult:
        """Reset, and begin a new episode.

        Raises:
            RuntimeError: If an episode is running and `allow_early_resets` is False.
            ValueError: If an argument among the `reset_keywords` is missing.
        """
        if self._running and not self.allow_early_resets:
            raise RuntimeError(
                "Expected the episode to end before reset(), as allow_early_resets=False."
            )
        missing = [key for key in self.reset_keywords if kwargs.get(key) is None]
        if missing:
            raise ValueError(
                f"Expected reset() to get the arguments reset_keywords={self.reset_keywords}, "
                f"missing: {missing}."
            )
        self._reset_info = {key: kwargs[key] for key in self.reset_keywords}
        self._rewards = []
        self._running = True
        return self.env.reset(**kwargs)

    def step(self, action: Action) -> StepResult:
        """Step, and sum up the episode if it has ended.

        Raises:
            RuntimeError: If the episode has ended already.
        """
        if not self._running:
            raise RuntimeError("Expected reset() before step(), as the episode has ended.")
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.total_steps += 1
        self._rewards.append(float(reward))
        if terminated or truncated:
            self._running = False
            self.episode_returns.append(sum(self._rewards))
            self.episode_lengths.append(len(self._rewards))
            self.episode_times.append(time.time() - self._start)
            episode: Info = {
                "r": round(self.episode_returns[-1], 6),
                "l": self.episode_lengths[-1],
                "t": round(self.episode_times[-1], 6),
            }
            episode.update(self._reset_info)
            episode.update((key, info[key]) for key in self.info_keywords)
            if self._file is not None:
                self._writer.writerow(episode)
                self._file.flush()
            info["episode"] = episode
        return obs, reward, terminated, truncated, info

    def get_total_steps(self) -> int:
        """The number of steps so far."""
        return self.total_steps

    def get_episode_rewards(self) -> list[float]:
        """The return of each episode that has ended."""
        return self.episode_returns

    def get_episode_lengths(self) -> list[int]:
        """The length of each episode that has ended."""
        return self.episode_lengths

    def get_episode_times(self) -> list[float]:
        """When each episode ended, in seconds since the monitor was made."""
        return self.episode_times

    def close(self) -> None:
        """Close the environment and the file."""
        super().close()
        if self._file is not None:
            self._file.close()


class MonitoredEnv:
    """A function that makes one environment, as SB3's `make_vec_env` makes it.

    Args:
        env_id: The id or spec of a registered environment, or a function that makes one.
        rank: The number of the environment, for the seed of its action space and its file name.
        seed: The seed of the action space of rank 0.
        env_kwargs: Passed to the environment. A registered environment that takes a `render_mode`
            gets `"rgb_array"`, unless `env_kwargs` has another one.
        monitor: The monitor's class.
        monitor_dir: The folder of the monitor files, or None.
        monitor_kwargs: Passed to the monitor.
        wrapper_class: Put around the monitored environment.
        wrapper_kwargs: Passed to that wrapper.
    """

    def __init__(
        self,
        env_id: str | EnvSpec | Callable[..., SingleEnv],
        rank: int,
        *,
        seed: int | None,
        env_kwargs: Kwargs,
        monitor: Callable[..., SingleEnv],
        monitor_dir: str | None,
        monitor_kwargs: Kwargs,
        wrapper_class: Callable[..., SingleEnv] | None,
        wrapper_kwargs: Kwargs,
    ) -> None:
        self.env_id, self.rank, self.seed = env_id, rank, seed
        self.env_kwargs = dict(env_kwargs)
        self.monitor, self.monitor_kwargs = monitor, dict(monitor_kwargs)
        self.monitor_dir = monitor_dir
        self.wrapper_class, self.wrapper_kwargs = wrapper_class, dict(wrapper_kwargs)

    def __call__(self) -> SingleEnv:
        """Make the environment."""
        env = self._make()
        if self.seed is not None:
            env.action_space.seed(self.seed + self.rank)
        filename = None
        if self.monitor_dir is not None:
            Path(self.monitor_dir).mkdir(parents=True, exist_ok=True)
            filename = str(Path(self.monitor_dir) / str(self.rank))
        env = self.monitor(env, filename=filename, **self.monitor_kwargs)
        return env if self.wrapper_class is None else self.wrapper_class(env, **self.wrapper_kwargs)

    def _make(self) -> SingleEnv:
        if not isinstance(self.env_id, str | EnvSpec):
            return self.env_id(**self.env_kwargs)
        try:
            return gym.make(self.env_id, **{"render_mode": "rgb_array", **self.env_kwargs})
        except TypeError:  # an environment that takes no render_mode
            return gym.make(self.env_id, **self.env_kwargs)
