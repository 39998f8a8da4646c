"""One environment for `make_vec_env`, monitored, made in this process or in a worker.

Workers import this module, so it imports neither SB3 nor torch: SB3's own `Monitor` would cost
every worker hundreds of megabytes.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from sb3compat._convert.types import (
    Action,
    Info,
    Kwargs,
    ResetResult,
    SingleEnv,
    StepResult,
)
from sb3compat._upstream.vec_env import converted
from sb3compat.errors import shown

# Makes a monitor: a class with the arguments and attributes of SB3's `Monitor`.
Monitor = Callable[..., SingleEnv]

SUFFIX = "monitor.csv"
# The key of the header that names the run which began the file.
RUN = "run"


class Run(NamedTuple):
    """One run of monitors: the monitor files that belong together.

    When a lost worker is replaced, its environments are recreated, and their monitors append to the
    files of their run.

    Attributes:
        name: Unique for each run.
        t_start: When it began, in seconds, from which times count.
    """

    name: str
    t_start: float


class ResultsWriter:
    """The file of one monitor, as SB3's class of that name writes it.

    If a worker was replaced, its new monitor appends to the file that the same run has begun.

    Args:
        filename: Where to write; `.monitor.csv` is appended.
        header: What is known of the file; with the key `"run"`, its run.
        extra_keys: What rows hold besides `r`, `l` and `t`.
        override_existing: Whether to begin a new file unless the run has begun this one.

    Attributes:
        file_handler: The file.
        logger: Writes the rows.
    """

    def __init__(
        self,
        filename: str,
        header: Mapping[str, Any],
        extra_keys: Sequence[str] = (),
        override_existing: bool = True,
    ) -> None:
        path = _path_of(filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.read_bytes() if path.exists() else b""
        # No other run has this name.
        own = RUN in header and str(header[RUN]).encode() in written.partition(b"\n")[0]
        append = own or not override_existing
        self.file_handler = path.open("a" if append else "w", newline="\n")
        if append and written and not written.endswith(b"\n"):
            self.file_handler.write("\n")
        self.logger = csv.DictWriter(self.file_handler, ("r", "l", "t", *extra_keys))
        if not append:
            # By one write: a worker that is killed leaves both lines or none.
            self.file_handler.write(f"#{json.dumps(header)}\n")
            self.logger.writeheader()
        self.file_handler.flush()

    def write_row(self, epinfo: Info) -> None:
        """Write the results of an episode."""
        self.logger.writerow(epinfo)
        self.file_handler.flush()

    def close(self) -> None:
        """Close the file."""
        self.file_handler.close()


def results_of(
    monitor: Any, filename: str, override_existing: bool, run: Run | None = None
) -> ResultsWriter:
    """The file of this monitor, with its run added to SB3's header."""
    spec = monitor.env.spec
    header = {"t_start": monitor.t_start, "env_id": str(spec.id if spec else None)}
    keys = (*monitor.reset_keywords, *monitor.info_keywords)
    return ResultsWriter(
        filename, header | ({RUN: run.name} if run else {}), keys, override_existing
    )


def _path_of(filename: str) -> Path:
    if filename.endswith(SUFFIX):
        return Path(filename)
    return Path(filename, SUFFIX) if Path(filename).is_dir() else Path(f"{filename}.{SUFFIX}")


class EpisodeMonitor(gym.Wrapper[Any, Any, Any, Any]):
    """Adds `info["episode"]` at the end of each episode, and writes the files of SB3's `Monitor`.

    `env_is_wrapped` treats it as SB3's `Monitor`. SB3's `evaluate_policy` asks for that class, and
    without a monitor it evaluates the rewards and endings as changed by outer wrappers.

    `info["episode"]` holds the return `r` (rounded to 6 digits), the length `l` and the seconds `t`
    since `t_start`, as `stable_baselines3.common.monitor.Monitor` has them. SB3's
    `load_results` reads the files.

    Args:
        env: The environment.
        filename: Where to write; `.monitor.csv` is appended. None for no file.
        allow_early_resets: Whether an episode may be reset before it has ended.
        reset_keywords: Arguments of `reset` to write as well; `reset` then requires them.
        info_keywords: Info keys of the last step to write as well.
        override_existing: Whether to begin a new file; False appends to an existing one.

    Attributes:
        t_start: When the monitor was made, or when the run of its file began, in seconds.
        results_writer: The file, or None.
        needs_reset: Whether no episode is running.
        rewards: The rewards of the episode.
        current_reset_info: The arguments of the last reset that are among the `reset_keywords`.
        total_steps: The number of steps so far.
        episode_returns: The return of each episode that has ended.
        episode_lengths: The length of each episode that has ended.
        episode_times: When each episode ended, in seconds since `t_start`.
    """

    EXT = SUFFIX
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
        self.current_reset_info: Info = {}
        self.t_start = time.time()
        self.rewards: list[float] = []
        self.needs_reset = True
        self.total_steps = 0
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self.episode_times: list[float] = []
        self.results_writer: ResultsWriter | None = None
        if filename is not None:
            self.results_writer = results_of(self, filename, override_existing)

    def reset(self, **kwargs: Any) -> ResetResult:
        """Reset, and begin a new episode.

        Raises:
            RuntimeError: If an episode is running and `allow_early_resets` is False.
            ValueError: If an argument among the `reset_keywords` is missing.
        """
        if not self.needs_reset and not self.allow_early_resets:
            raise RuntimeError(
                "Expected the episode to end before reset(), as allow_early_resets=False. Step "
                "until it ends, or pass monitor_kwargs={'allow_early_resets': True}."
            )
        missing = [key for key in self.reset_keywords if kwargs.get(key) is None]
        if missing:
            raise ValueError(
                f"Expected reset() to get the arguments reset_keywords={self.reset_keywords}, "
                f"missing: {missing}. Pass them to reset, or leave them out of reset_keywords: a "
                "VecEnv passes only seed and options."
            )
        self.current_reset_info = {key: kwargs[key] for key in self.reset_keywords}
        self.rewards = []
        self.needs_reset = False
        return self.env.reset(**kwargs)

    def step(self, action: Action) -> StepResult:
        """Step, and sum up the episode if it has ended.

        Raises:
            RuntimeError: If no episode is running.
        """
        if self.needs_reset:
            raise RuntimeError(
                "Expected reset() before step(), as no episode is running. Call reset() first."
            )
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.rewards.append(float(reward))
        if terminated or truncated:
            self.needs_reset = True
            self.episode_returns.append(sum(self.rewards))
            self.episode_lengths.append(len(self.rewards))
            self.episode_times.append(time.time() - self.t_start)
            episode: Info = {
                "r": round(self.episode_returns[-1], 6),
                "l": self.episode_lengths[-1],
                "t": round(self.episode_times[-1], 6),
            }
            episode.update(self.current_reset_info)
            episode.update((key, info[key]) for key in self.info_keywords)
            if self.results_writer is not None:
                self.results_writer.write_row(episode)
            info["episode"] = episode
        self.total_steps += 1
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
        """When each episode ended, in seconds since `t_start`."""
        return self.episode_times

    def close(self) -> None:
        """Close the environment and the file."""
        super().close()
        if self.results_writer is not None:
            self.results_writer.close()


@dataclass(frozen=True)
class MonitoredEnv:
    """A function that makes one environment, as SB3's `make_vec_env` makes it.

    Attributes:
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
        spec: What `env_id` means, for a worker that does not know the id.
        run: The run that the monitor files belong to, if the environment may be recreated.
    """

    env_id: str | EnvSpec | Callable[..., SingleEnv]
    rank: int
    seed: int | None
    env_kwargs: Kwargs
    monitor: Monitor
    monitor_dir: str | None
    monitor_kwargs: Kwargs
    wrapper_class: Callable[..., SingleEnv] | None
    wrapper_kwargs: Kwargs
    spec: EnvSpec | None = None
    run: Run | None = None

    def __str__(self) -> str:
        """What it makes, for messages."""
        given = self.env_id.id if isinstance(self.env_id, EnvSpec) else self.env_id
        return repr(given) if isinstance(given, str) else str(getattr(given, "__qualname__", given))

    def __call__(self) -> SingleEnv:
        """Make the environment."""
        env = self._make()
        if self.seed is not None:
            env.action_space.seed(self.seed + self.rank)
        filename = None
        if self.monitor_dir is not None:
            Path(self.monitor_dir).mkdir(parents=True, exist_ok=True)
            filename = str(Path(self.monitor_dir) / str(self.rank))
        if self.run is None or filename is None:
            env = _called("monitor_kwargs", self.monitor, self.monitor_kwargs, env, filename)
        else:
            made: Any = _called("monitor_kwargs", self.monitor, self.monitor_kwargs, env, None)
            made.t_start = self.run.t_start
            override = self.monitor_kwargs.get("override_existing", True)
            made.results_writer = results_of(made, filename, override, self.run)
            env = made
        if self.wrapper_class is None:
            return env
        return _called("wrapper_kwargs", self.wrapper_class, self.wrapper_kwargs, env)

    def _make(self) -> SingleEnv:
        if not isinstance(self.env_id, str | EnvSpec):
            made: SingleEnv = converted(_called("env_kwargs", self.env_id, self.env_kwargs))
            return made
        env_id = self.env_id
        if self.spec is not None:
            module = str(env_id).rpartition(":")[0]
            if module:
                with suppress(ImportError):  # the spec is here
                    import_module(module)
            env_id = self.spec
        try:
            return gym.make(env_id, **{"render_mode": "rgb_array", **self.env_kwargs})
        except TypeError:  # an environment that takes no render_mode
            return gym.make(env_id, **self.env_kwargs)


def _called(name: str, make: Callable[..., SingleEnv], kwargs: Kwargs, *args: Any) -> SingleEnv:
    """What `make` returns; if it does not take these arguments, the error names `name`."""
    try:
        return make(*args, **kwargs)
    except TypeError as error:
        # If the traceback has a frame of `make`, `make` has begun, and the error is its own.
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        called = getattr(make, "__qualname__", make)
        raise TypeError(
            f"Expected {name} to be what {called} takes, got {name}={shown(kwargs)}: {error}. "
            f"Change {name}."
        ) from None
