"""Broken VecEnvs that simulate all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.vec_parts import NativeVecEnv, Step


@unseen("vec_env", broken=True)
class QueueSurvivesReset(NativeVecEnv):
    """Three counters that go up and down by the actions until they reach five.

    Wrong: step_async puts the actions in a queue that reset leaves as it is, so that a step that
    was begun before the reset is taken after it, and every later one comes late.
    """

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(-100, 100, (1,), np.int64), spaces.Discrete(3, start=-1))
        self.counts = np.zeros(3, np.int64)
        self.steps = np.zeros(3, np.int64)
        self.queue: list[Any] = []

    def reset(self) -> Any:
        self.take_seeds()
        self.counts, self.steps = self.draw(-3, 3), np.zeros(3, np.int64)
        return self.counts[:, None].copy()

    def step_async(self, actions: Any) -> None:
        self.queue.append(np.array(actions))

    def step_wait(self) -> Step:
        self.counts += self.queue.pop(0)
        self.steps += 1
        there, late = self.counts >= 5, self.steps >= 15
        dones, infos = there | late, self.infos(late & ~there)
        rewards = self.counts.astype(np.float32)
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = self.counts[i : i + 1].copy()
            self.counts[i], self.steps[i] = self.dice[i].integers(-3, 3), 0
        return self.counts[:, None].copy(), rewards, dones, infos


class Pendulums(NativeVecEnv):
    """Pendulums under noisy torques, with episodes of ten steps."""

    def __init__(self, num_envs: int) -> None:
        high = np.array([1, 1, 8], np.float32)
        actions = spaces.Box(-1, 1, (1,), np.float32)
        super().__init__(num_envs, spaces.Box(-high, high, dtype=np.float32), actions)
        self.angles, self.speeds = np.zeros(num_envs), np.zeros(num_envs)
        self.steps = np.zeros(num_envs, np.int64)
        self.scale = 2

    def reset(self) -> Any:
        self.take_seeds()
        for i in range(self.num_envs):
            self.start(i)
        return self.look()

    def start(self, i: Any) -> None:
        """Let one of them begin anew."""
        self.angles[i], self.speeds[i] = self.dice[i].uniform(-1, 1, 2)
        self.steps[i] = 0

    def swing(self, torques: Any) -> None:
        """Move them all."""
        noise = np.array([dice.normal(0, 0.1) for dice in self.dice])
        faster = self.speeds + 0.05 * (15 * np.sin(self.angles) + 3 * (torques + noise))
        self.speeds = np.clip(faster, -8, 8)
        self.angles = self.angles + 0.05 * self.speeds
        self.steps += 1

    def look(self) -> Any:
        """Return what is observed."""
        seen = [np.cos(self.angles), np.sin(self.angles), self.speeds]
        return np.stack(seen, axis=1).astype(np.float32)

    def step_wait(self) -> Step:
        self.swing(self.scale * self.actions[:, 0])
        rewards = -np.abs(self.angles).astype(np.float32)
        dones = self.steps >= 10
        infos, last = self.infos(dones), self.look()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = last[i].copy()
            self.start(i)
        return self.look(), rewards, dones, infos


@unseen("vec_env", broken=True)
class SharedGoal(NativeVecEnv):
    """Three reachers that observe a dictionary: where they are, and the goal of the episode.

    Wrong: the position is copied, but the goals are the simulator's own array, in which the goals
    of the next episodes are written.
    """

    def __init__(self) -> None:
        line = spaces.Box(-20, 20, (1,), np.float32)
        super().__init__(3, spaces.Dict({"at": line, "goal": line}), spaces.Discrete(2))
        self.at = np.zeros((3, 1), np.float32)
        self.goals = np.zeros((3, 1), np.float32)
        self.steps = np.zeros(3, np.int64)

    def begin(self, i: Any) -> None:
        """Draw a goal."""
        self.at[i], self.steps[i] = 0, 0
        self.goals[i] = self.dice[i].choice([-3, -2, 2, 3])

    def reset(self) -> Any:
        self.take_seeds()
        for i in range(3):
            self.begin(i)
        return {"at": self.at.copy(), "goal": self.goals}

    def step_wait(self) -> Step:
        self.at[:, 0] += np.where(self.actions == 1, 1, -1)
        self.steps += 1
        there = (self.at == self.goals)[:, 0]
        late = self.steps >= 12
        rewards = -np.abs(self.at - self.goals)[:, 0]
        infos = self.infos(late & ~there)
        for i in np.flatnonzero(there | late):
            last = {"at": self.at[i].copy(), "goal": self.goals[i].copy()}
            infos[i]["terminal_observation"] = last
            self.begin(i)
        return {"at": self.at.copy(), "goal": self.goals}, rewards, there | late, infos


@unseen("vec_env", broken=True)
class LingeringTerminal(NativeVecEnv):
    """Four machines with a few levers (MultiDiscrete), that break when the levers agree.

    Wrong: each row has one dictionary that every step updates, and the terminal observation of an
    episode is never taken out again.
    """

    def __init__(self) -> None:
        super().__init__(4, spaces.MultiDiscrete([3, 3]), spaces.MultiDiscrete([3, 3, 2]))
        self.wheels = np.zeros((4, 2), np.int64)
        self.kept: list[dict[str, Any]] = [{} for _ in range(4)]

    def reset(self) -> Any:
        self.take_seeds()
        self.kept = [{} for _ in range(4)]
        self.wheels = self.draw(0, 3, 2)
        return self.wheels.copy()

    def step_wait(self) -> Step:
        self.wheels = (self.wheels + self.actions[:, :2] + self.draw(0, 2, 2)) % 3
        dones = (self.actions[:, 0] == self.actions[:, 1]) & (self.actions[:, 2] == 1)
        rewards = self.wheels.sum(axis=1).astype(np.float32)
        for i, info in enumerate(self.kept):
            info.update({"TimeLimit.truncated": False, "wheels": self.wheels[i].copy()})
            if dones[i]:
                info["terminal_observation"] = self.wheels[i].copy()
                self.wheels[i] = self.dice[i].integers(0, 3, 2)
        return self.wheels.copy(), rewards, dones, [dict(info) for info in self.kept]


@unseen("vec_env", broken=True)
class CompactedFinals(NativeVecEnv):
    """Five lamps on a meter each, which go out when the meter is empty.

    Wrong: the terminal observations of the rows that ended are numbered from 0, and written into
    the infos by that number.
    """

    def __init__(self) -> None:
        super().__init__(5, spaces.Box(0, 20, (1,), np.float32), spaces.Discrete(3))
        self.meters = np.zeros((5, 1), np.float32)

    def reset(self) -> Any:
        self.take_seeds()
        self.meters = self.draw(4, 10, 1).astype(np.float32)
        return self.meters.copy()

    def step_wait(self) -> Step:
        self.meters = np.maximum(self.meters - self.actions[:, None].astype(np.float32), 0)
        dones = self.meters[:, 0] == 0
        rewards = self.actions.astype(np.float32)
        infos = self.infos()
        for number, last in enumerate(self.meters[dones].copy()):
            infos[number]["terminal_observation"] = last
        for i in np.flatnonzero(dones):
            self.meters[i] = self.dice[i].integers(4, 10)
        return self.meters.copy(), rewards, dones, infos
