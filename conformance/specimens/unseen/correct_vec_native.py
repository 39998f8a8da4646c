"""Correct VecEnvs that simulate all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from conformance.specimens.registry import unseen
from conformance.specimens.unseen.vec_parts import NativeVecEnv, Step


@unseen("vec_env")
class RowsOfOwnLimits(NativeVecEnv):
    """Five rows whose episodes have 1, 2, 3, 5 and 8 steps, by design; they only truncate."""

    limits = np.array([1, 2, 3, 5, 8])

    def __init__(self) -> None:
        super().__init__(5, spaces.Box(-1, 10, (2,), np.float32), spaces.Discrete(2))
        self.steps, self.levels = np.zeros(5, np.int64), np.zeros(5)

    def reset(self) -> Any:
        self.take_seeds()
        self.steps, self.levels = np.zeros(5, np.int64), self.drawn()
        return self.look()

    def drawn(self) -> Any:
        """Draw a level per row."""
        return np.array([dice.random() for dice in self.dice])

    def look(self) -> Any:
        """Return how far each is, and its level."""
        return np.stack([self.steps, self.levels], axis=1).astype(np.float32)

    def step_wait(self) -> Step:
        self.steps += 1
        self.levels = np.where(self.actions == 1, 1 - self.levels, self.levels)
        rewards, dones = self.levels.astype(np.float32), self.steps >= self.limits
        infos, last, fresh = self.infos(dones), self.look(), self.drawn()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = last[i].copy()
        self.steps[dones], self.levels[dones] = 0, fresh[dones]
        return self.look(), rewards, dones, infos


@unseen("vec_env")
class SharedDice(NativeVecEnv):
    """Three games of dice, with one generator for all rows, which seed(s) seeds with s."""

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(0, 40, (1,), np.int64), spaces.Discrete(2))
        self.generator = np.random.default_rng()
        self.sums = np.zeros((3, 1), np.int64)

    def reset(self) -> Any:
        if self._seeds[0] is not None:
            self.generator = np.random.default_rng(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self.sums = self.generator.integers(1, 7, (3, 1))
        return self.sums.copy()

    def step_wait(self) -> Step:
        faces = self.generator.integers(1, 7, 3)
        thrown = self.actions == 1
        self.sums[:, 0] += np.where(thrown, faces, 0)
        lost = self.sums[:, 0] > 21
        dones = lost | ~thrown
        rewards = np.where(dones & ~lost, self.sums[:, 0], 0).astype(np.float32)
        infos = self.infos()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = self.sums[i].copy()
            infos[i]["is_success"] = not lost[i]
            self.sums[i] = self.generator.integers(1, 7)
        return self.sums.copy(), rewards, dones, infos


@unseen("vec_env")
class NoDiceAtAll(NativeVecEnv):
    """Four cellular automata of eight cells, without any draw: row i begins with cell i set.

    The episode terminates when no cell is set, and is truncated after 25 steps.
    """

    def __init__(self) -> None:
        super().__init__(4, spaces.MultiBinary(8), spaces.Discrete(8))
        self.cells, self.steps = np.zeros((4, 8), np.int8), np.zeros(4, np.int64)

    def reset(self) -> Any:
        self.take_seeds()
        self.cells, self.steps = np.eye(4, 8, dtype=np.int8), np.zeros(4, np.int64)
        return self.cells.copy()

    def step_wait(self) -> Step:
        self.cells[np.arange(4), self.actions] ^= 1
        left, right = np.roll(self.cells, 1, axis=1), np.roll(self.cells, -1, axis=1)
        self.cells = left ^ (self.cells & right)
        self.steps += 1
        dead, late = ~self.cells.any(axis=1), self.steps >= 25
        rewards = self.cells.sum(axis=1).astype(np.float32)
        infos = self.infos(late & ~dead)
        for i in np.flatnonzero(dead | late):
            infos[i]["terminal_observation"] = self.cells[i].copy()
            self.cells[i], self.steps[i] = np.eye(4, 8, dtype=np.int8)[i], 0
        return self.cells.copy(), rewards, dead | late, infos


@unseen("vec_env")
class ConstantReward(NativeVecEnv):
    """Three drunkards in the plane who get 1 for each step, to the wall or for twenty steps."""

    def __init__(self) -> None:
        plane = spaces.Box(-4, 4, (2,), np.float64)
        super().__init__(3, plane, spaces.Box(-1, 1, (2,), np.float64))
        self.at, self.steps = np.zeros((3, 2)), np.zeros(3, np.int64)

    def reset(self) -> Any:
        self.take_seeds()
        self.at, self.steps = np.zeros((3, 2)), np.zeros(3, np.int64)
        return self.at.copy()

    def step_wait(self) -> Step:
        pushes = np.stack([dice.normal(0, 0.5, 2) for dice in self.dice])
        self.at = np.clip(self.at + self.actions + pushes, -4, 4)
        self.steps += 1
        wall, late = (np.abs(self.at) == 4).any(axis=1), self.steps >= 20
        infos, obs = self.infos(late & ~wall), self.at.copy()
        for i in np.flatnonzero(wall | late):
            infos[i]["terminal_observation"] = self.at[i].copy()
            obs[i], self.at[i], self.steps[i] = 0, 0, 0
        return obs, np.ones(3, np.float32), wall | late, infos


@unseen("vec_env")
class WalledMaze(NativeVecEnv):
    """Two mice in a maze in which most actions run into a wall and change nothing.

    The cell is observed as a number (Discrete), and the maze begins at 0 always.
    """

    maze = ("S#...", ".#.#.", ".#.#.", "...#G", "##.#.")

    def __init__(self) -> None:
        super().__init__(2, spaces.Discrete(25), spaces.Discrete(4))
        self.cells, self.steps = np.zeros(2, np.int64), np.zeros(2, np.int64)

    def reset(self) -> Any:
        self.take_seeds()
        self.cells, self.steps = np.zeros(2, np.int64), np.zeros(2, np.int64)
        return self.cells.copy()

    def beyond(self, cell: int, action: int) -> int:
        """Return the cell that the action leads to."""
        row, column = divmod(cell, 5)
        down, right = ((0, 1), (1, 0), (0, -1), (-1, 0))[action]
        row, column = row + down, column + right
        inside = 0 <= row < 5 and 0 <= column < 5
        return row * 5 + column if inside and self.maze[row][column] != "#" else cell

    def step_wait(self) -> Step:
        moved = zip(self.cells, self.actions, strict=True)
        self.cells = np.array([self.beyond(int(cell), int(action)) for cell, action in moved])
        self.steps += 1
        there, late = self.cells == 19, self.steps >= 30
        infos = self.infos(late & ~there)
        for i in np.flatnonzero(there | late):
            infos[i]["terminal_observation"] = self.cells[i]
            self.cells[i], self.steps[i] = 0, 0
        return self.cells.copy(), there.astype(np.float32), there | late, infos


@unseen("vec_env")
class OneStepBandit(NativeVecEnv):
    """Three bandits: each episode has one step, and the observation is always the same number.

    What reset returns, what step returns and the terminal observations are therefore all equal.
    """

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(4))

    def reset(self) -> Any:
        self.take_seeds()
        return np.full((3, 1), 0.5, np.float32)

    def step_wait(self) -> Step:
        infos = self.infos()
        for info in infos:
            info["terminal_observation"] = np.full(1, 0.5, np.float32)
        noise = np.array([dice.normal() for dice in self.dice])
        rewards = (self.actions + noise).astype(np.float32)
        return np.full((3, 1), 0.5, np.float32), rewards, np.ones(3, bool), infos


@unseen("vec_env")
class Marathon(NativeVecEnv):
    """Two runners whose episodes are truncated after a million steps."""

    def __init__(self) -> None:
        super().__init__(2, spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(2))
        self.breath, self.steps = np.ones((2, 1)), 0

    def reset(self) -> Any:
        self.take_seeds()
        return self.begin()

    def begin(self) -> Any:
        """Let both begin anew."""
        self.breath, self.steps = np.stack([dice.uniform(0, 1, 1) for dice in self.dice]), 0
        return self.breath.astype(np.float32)

    def step_wait(self) -> Step:
        self.breath = np.where(self.actions[:, None] == 1, self.breath * 0.9, self.breath + 0.1)
        self.breath = np.clip(self.breath, 0, 1)
        self.steps += 1
        dones, obs = np.full(2, self.steps >= 1_000_000), self.breath.astype(np.float32)
        rewards, infos = self.actions.astype(np.float32), self.infos(dones)
        if dones.all():
            for info, last in zip(infos, obs, strict=True):
                info["terminal_observation"] = last.copy()
            obs = self.begin()
        return obs, rewards, dones, infos


@unseen("vec_env")
class BigImages(NativeVecEnv):
    """Two large images with a square that is pushed about for seven steps, or over the border."""

    def __init__(self) -> None:
        super().__init__(2, spaces.Box(0, 255, (96, 96, 3), np.uint8), spaces.Discrete(4))
        self.squares, self.steps = np.zeros((2, 2), np.int64), np.zeros(2, np.int64)

    def begin(self, i: Any) -> None:
        """Draw a place."""
        self.squares[i], self.steps[i] = self.dice[i].integers(10, 70, 2), 0

    def look(self, i: Any) -> Any:
        """Return the image of one row."""
        image = np.zeros((96, 96, 3), np.uint8)
        row, column = self.squares[i]
        image[row : row + 16, column : column + 16] = (255, 128 + 3 * self.steps[i], 0)
        return image

    def reset(self) -> Any:
        self.take_seeds()
        for i in range(2):
            self.begin(i)
        return np.stack([self.look(0), self.look(1)])

    def step_wait(self) -> Step:
        ways = np.array([(0, 9), (9, 0), (0, -9), (-9, 0)])
        self.squares = self.squares + ways[self.actions]
        self.steps += 1
        out = ((self.squares < 0) | (self.squares > 80)).any(axis=1)
        self.squares = np.clip(self.squares, 0, 80)
        late = self.steps >= 7
        infos = self.infos(late & ~out)
        for i in np.flatnonzero(out | late):
            infos[i]["terminal_observation"] = self.look(i)
            self.begin(i)
        rewards = -out.astype(np.float32)
        return np.stack([self.look(0), self.look(1)]), rewards, out | late, infos


@unseen("vec_env")
class DictSensors(NativeVecEnv):
    """Three drones that observe an image, joints and a gear, in a dictionary of spaces."""

    def __init__(self) -> None:
        sensors = spaces.Dict(
            {
                "image": spaces.Box(0, 255, (6, 6, 1), np.uint8),
                "joints": spaces.Box(-3, 3, (3,), np.float32),
                "gear": spaces.Discrete(4),
            }
        )
        super().__init__(3, sensors, spaces.MultiDiscrete([4, 3]))
        self.joints, self.gears = np.zeros((3, 3), np.float32), np.zeros(3, np.int64)

    def look(self) -> dict[str, Any]:
        """Return what the three observe."""
        images = np.zeros((3, 6, 6, 1), np.uint8)
        images[np.arange(3), self.gears] = 200
        return {"image": images, "joints": self.joints.copy(), "gear": self.gears.copy()}

    def reset(self) -> Any:
        self.take_seeds()
        self.joints = np.stack([dice.uniform(-1, 1, 3) for dice in self.dice]).astype(np.float32)
        self.gears = self.draw(0, 4)
        return self.look()

    def step_wait(self) -> Step:
        self.gears = self.actions[:, 0].copy()
        self.joints[np.arange(3), self.actions[:, 1]] += self.gears - 1
        dones = (np.abs(self.joints) > 2).any(axis=1)
        self.joints = np.clip(self.joints, -3, 3)
        rewards, infos, last = -np.abs(self.joints).sum(axis=1), self.infos(), self.look()
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = {key: last[key][i].copy() for key in last}
            self.joints[i] = self.dice[i].uniform(-1, 1, 3)
            self.gears[i] = self.dice[i].integers(0, 4)
        return self.look(), rewards, dones, infos


@unseen("vec_env")
class TupleCards(NativeVecEnv):
    """Four players who draw cards; a tuple is observed, of the card and of two odds."""

    def __init__(self) -> None:
        table = spaces.Tuple((spaces.Discrete(13), spaces.Box(0, 1, (2,), np.float32)))
        super().__init__(4, table, spaces.Discrete(2))
        self.cards, self.odds = np.zeros(4, np.int64), np.zeros((4, 2), np.float32)

    def take(self, i: Any) -> None:
        """Draw a card."""
        self.cards[i], self.odds[i] = self.dice[i].integers(0, 13), self.dice[i].random(2)

    def reset(self) -> Any:
        self.take_seeds()
        for i in range(4):
            self.take(i)
        return self.cards.copy(), self.odds.copy()

    def step_wait(self) -> Step:
        before = self.cards.copy()
        for row in range(4):
            self.take(row)
        right = (self.cards > before) == (self.actions == 1)
        rewards, infos = right.astype(np.float32), self.infos()
        for i in np.flatnonzero(~right):
            infos[i]["terminal_observation"] = (self.cards[i], self.odds[i].copy())
            self.take(i)
        return (self.cards.copy(), self.odds.copy()), rewards, ~right, infos


@unseen("vec_env")
class BinarySwitches(NativeVecEnv):
    """Three boards of six lamps and switches (MultiBinary), until all are lit, or 15 steps."""

    def __init__(self) -> None:
        super().__init__(3, spaces.MultiBinary(6), spaces.MultiBinary(6))
        self.lit, self.steps = np.zeros((3, 6), np.int8), np.zeros(3, np.int64)

    def reset(self) -> Any:
        self.take_seeds()
        self.lit, self.steps = self.draw(0, 2, 6).astype(np.int8), np.zeros(3, np.int64)
        return self.lit.copy()

    def step_wait(self) -> Step:
        self.lit = self.lit ^ self.actions.astype(np.int8)
        self.steps += 1
        there, late = self.lit.all(axis=1), self.steps >= 15
        rewards, infos = self.lit.mean(axis=1).astype(np.float32), self.infos(late & ~there)
        for i in np.flatnonzero(there | late):
            infos[i]["terminal_observation"] = self.lit[i].copy()
            self.lit[i], self.steps[i] = self.dice[i].integers(0, 2, 6), 0
        return self.lit.copy(), rewards, there | late, infos
