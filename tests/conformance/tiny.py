"""A VecEnv of a few lines, and ways to break it; what the tests name as targets.

Duck-typed, so that the processes which run the checks need not import Stable-Baselines3.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import Any

import numpy as np
from gymnasium import spaces


class TinyVecEnv:
    """Two rows; an observation is the number of the row and the time; episodes of 3 and 4 steps."""

    render_mode = None

    def __init__(self, num_envs: int = 2) -> None:
        self.num_envs = num_envs
        self.observation_space = spaces.Box(0, 10, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self.times = np.zeros(num_envs, int)

    def seed(self, seed: int | None = None) -> list[int | None]:
        return [None if seed is None else seed + i for i in range(self.num_envs)]

    def reset(self) -> Any:
        self.times[:] = 0
        return self.observe()

    def observe(self) -> np.ndarray:
        return np.stack([np.arange(self.num_envs), self.times], axis=1).astype(np.float32)

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> Any:
        self.times += 1
        obs = self.observe()
        dones = self.times >= np.arange(self.num_envs) + 3
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            infos[i] = {"terminal_observation": obs[i].copy(), "TimeLimit.truncated": True}
            self.times[i] = obs[i][1] = 0
        return obs, np.ones(self.num_envs, np.float32), dones, infos

    def step(self, actions: np.ndarray) -> Any:
        self.step_async(actions)
        return self.step_wait()

    def close(self) -> None:
        pass


def one_at_a_time() -> type[TinyVecEnv]:
    """A class that takes something which there is only one of."""

    class OneAtATime(TinyVecEnv):
        taken = False

        def __init__(self) -> None:
            super().__init__()
            if OneAtATime.taken:
                raise OSError("address already in use")
            OneAtATime.taken = True

        def close(self) -> None:
            OneAtATime.taken = False

    return OneAtATime


class FloatDones(TinyVecEnv):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones.astype(float), infos


class Generous(TinyVecEnv):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, 2 * rewards, dones, infos


class NoTerminalObservation(TinyVecEnv):
    forgets = True

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones, [{} for _ in infos] if self.forgets else infos


class AtTheEnd(TinyVecEnv):
    """Does something when an episode has ended."""

    def step_wait(self) -> Any:
        result = super().step_wait()
        if result[2].any():
            self.at_the_end()
        return result

    def at_the_end(self) -> None:
        raise NotImplementedError


class Raises(AtTheEnd):
    def at_the_end(self) -> None:
        raise OSError("the simulator is gone")


class Hangs(AtTheEnd):
    def at_the_end(self) -> None:
        time.sleep(1000)


class HangsInReset(TinyVecEnv):
    def reset(self) -> Any:
        time.sleep(1000)


class HangsInClose(TinyVecEnv):
    def close(self) -> None:
        time.sleep(1000)


def hangs() -> Any:
    time.sleep(1000)


class Dies(AtTheEnd):
    def at_the_end(self) -> None:
        print("out of memory", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


class Faults(AtTheEnd):
    def at_the_end(self) -> None:
        ctypes.string_at(0)


class Endless(TinyVecEnv):
    def step_wait(self) -> Any:
        self.times[:] = 0
        return super().step_wait()


class Noisy(TinyVecEnv):
    """Draws from the global random state."""

    def observe(self) -> np.ndarray:
        obs = super().observe()
        obs[:, 0] = np.random.uniform(0, 10, self.num_envs)
        return obs


class Flaky(NoTerminalObservation):
    """Forgets terminal observations at times."""

    forgets = False


def boom() -> Any:
    raise ValueError("no licence for the simulator")


def nonsense() -> int:
    return 3


def single() -> None:
    return None


singles = [single, single]
number = 3


class NoReset(TinyVecEnv):
    """Resets as a `VectorEnv` does."""

    def reset(self) -> Any:
        return super().reset(), {}


class Loud(TinyVecEnv):
    """Raises what not every terminal can show."""

    def reset(self) -> Any:
        raise ValueError("[bold]≥[/bold] \x1b[31m \ud800")


class Worn(NoTerminalObservation):
    """Forgets the terminal observation for good, once some instances have been made."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        Worn.made += 1

    @property
    def forgets(self) -> bool:  # type: ignore[override]
        return Worn.made > 10


class Interrupts(AtTheEnd):
    """Interrupts the process that shows the results, once some instances have been made."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        Interrupts.made += 1

    def at_the_end(self) -> None:
        if Interrupts.made > 12:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(1000)
