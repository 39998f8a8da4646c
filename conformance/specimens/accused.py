"""Correct VecEnvs that a check took for broken once, each with that check.

Someone who had read the checks wrote them, to be accused by them.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from conformance.specimens.points import Config, Points
from conformance.specimens.registry import accused

if TYPE_CHECKING:
    Around: Any = object
else:
    try:
        from stable_baselines3.common.vec_env import VecEnvWrapper as Around
    except ModuleNotFoundError:
        Around = object

ROWS = 3


class Walker(gym.Env[Any, Any]):
    """A point that the actions and the wind push about, until the time is up."""

    observation_space: Any = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space: Any = spaces.Discrete(3)
    limit = 10

    def __init__(self) -> None:
        self.at: Any = np.zeros(2)
        self.time = 0

    @property
    def dice(self) -> np.random.Generator:
        """What everything is drawn from."""
        return self.np_random

    def take(self, seed: int | None) -> None:
        """Seed the dice."""
        super().reset(seed=seed)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.take(seed)
        self.time = 0
        self.begin()
        return self.look(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        self.move(int(action))
        arrived = self.arrived()
        return self.look(), self.reward(), arrived, self.time >= self.limit and not arrived, {}

    def begin(self) -> None:
        self.at = self.dice.uniform(-1, 1, 2)

    def move(self, action: int) -> None:
        self.at = self.dice.normal(self.at, 0.2)
        self.at[0] += 0.3 * (action - 1)

    def arrived(self) -> bool:
        return False

    def look(self) -> Any:
        return self.at.astype(np.float32)

    def reward(self) -> float:
        return -1 - abs(float(self.at[0]))


class Walkers(Points):
    """Some of them."""

    row: type[Walker] = Walker

    def __init__(self) -> None:
        self.shared: list[Any] = [np.random.default_rng()]
        super().__init__(Config(rows=ROWS))

    def make_row(self, row: int) -> Any:
        made = self.row()
        if isinstance(made, DrawsFromOne):
            made.shared, made.is_first = self.shared, row == 0
        return made


def _rows(*checks: str) -> Callable[[type[Walker]], type[Walker]]:
    """Enter a class of rows."""

    def register(row: type[Walker]) -> type[Walker]:
        accused("vec_env", *checks)(type(row.__name__, (Walkers,), {"row": row}))
        return row

    return register


class DrawsFromOne(Walker):
    """The view of a row of a simulator that has one generator, which the first seed is for."""

    shared: list[np.random.Generator]
    is_first = False

    @property
    def dice(self) -> np.random.Generator:
        return self.shared[0]

    def take(self, seed: int | None) -> None:
        if seed is not None and self.is_first:
            self.shared[0] = np.random.default_rng(seed)


@_rows("rows_independent")
class StartsInTheOrderOfTheEnds(DrawsFromOne):
    """Nothing but starts is drawn; each view has an `np_random` that nobody uses."""

    limit = 12

    def move(self, action: int) -> None:
        self.at += 0.25 * (1 + action), 0.1

    def arrived(self) -> bool:
        return bool(self.at[0] > 3)


@_rows("rows_are_alike", "endings_together")
class DiceAtTheEnd(DrawsFromOne):
    """The way is fixed by the actions; what is found at its end is drawn."""

    limit = 1000

    def begin(self) -> None:
        self.at = np.zeros(2)

    def move(self, action: int) -> None:
        self.at[0] += 1 + action
        if self.arrived():
            self.at[1] = self.dice.uniform(0, 10)

    def arrived(self) -> bool:
        return bool(self.at[0] >= 20)


@_rows("terminal_observation_like_others")
class FliesHomeWhenTheTimeIsUp(Walker):
    """The wind is observed, too."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    limit = 8

    def begin(self) -> None:
        self.at, self.wind = self.dice.uniform(80, 120, 2), self.dice.normal()

    def move(self, action: int) -> None:
        self.wind = self.dice.normal()
        self.at += action - 1 + 0.5 * self.wind, 0.5 * self.wind
        if self.time >= self.limit:
            self.at = np.zeros(2)

    def look(self) -> Any:
        return np.array([*self.at, self.wind], np.float32)


@_rows("terminal_observation_is_last")
class LooksAtTheClockFirst(Walker):
    """In the step in which the time is up nothing moves, and there is no reward."""

    def move(self, action: int) -> None:
        if self.time < self.limit:
            super().move(action)

    def reward(self) -> float:
        return super().reward() if self.time < self.limit else 0.0


class Game(Walker):
    limit = 100

    def arrived(self) -> bool:
        return self.time >= 10


@accused("vec_env", "truncated_flag_exclusive")
class TerminatesAtItsLimit(Walkers):
    """The time limit that the game is registered with is that of its rules."""

    def make_row(self, row: int) -> Any:
        make: Any = Game
        spec = EnvSpec("Game-v0", make, max_episode_steps=10)
        return gym.make(spec, disable_env_checker=True)


@_rows("terminal_states_are_no_truncations")
class MayCatchTheLastBall(Walker):
    """An episode ends with a catch, which no observation shows."""

    observation_space = spaces.MultiDiscrete([5, 2])
    limit = 4

    def begin(self) -> None:
        self.ball, self.caught = int(self.dice.integers(2)), False

    def move(self, action: int) -> None:
        self.caught = action == self.ball
        self.ball = int(self.dice.integers(2))

    def arrived(self) -> bool:
        return self.time >= 3 and self.caught

    def look(self) -> Any:
        return np.array([self.time, self.ball])

    def reward(self) -> float:
        return float(self.caught)


@_rows("terminal_states_are_no_truncations")
class CaughtByANetInTheEnd(Walker):
    """It shows the height before, too: just above the ground, it has always fallen to it."""

    observation_space = spaces.Box(-5, 30, (2,), np.int64)
    limit = 12

    def begin(self) -> None:
        self.before = self.height = int(self.dice.integers(14, 25))

    def move(self, action: int) -> None:
        self.before = self.height
        self.height -= int(self.dice.integers(1, 4))
        if self.time == self.limit:
            self.height = self.before + 5

    def arrived(self) -> bool:
        return self.height <= 0

    def look(self) -> Any:
        return np.array([self.before, self.height])

    def reward(self) -> float:
        return 1.0


@_rows("trains_ppo", "trains_off_policy")
class NumberedBoards(Walker):
    """Boards of 25 fields with three states each, by their numbers: too many to code as one-hot."""

    observation_space = spaces.Discrete(3**25)
    action_space = spaces.Discrete(25)

    def begin(self) -> None:
        self.at = self.dice.integers(0, 3, 25)

    def move(self, action: int) -> None:
        self.at[action] = (self.at[action] + 1) % 3

    def look(self) -> Any:
        return np.int64((self.at * 3 ** np.arange(25)).sum())


@_rows("trains_off_policy")
class MeasuresInMillimetres(Walker):
    """Its numbers are large, and so are the gradients of networks."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def step(self, action: Any) -> Any:
        return super().step(action[0] > 0)

    def look(self) -> Any:
        return 1000 * super().look()


class Bricks(Walker):
    """Has a monitor."""

    def begin(self) -> None:
        super().begin()
        self.total = 0.0

    def arrived(self) -> bool:
        return bool(self.dice.random() < 0.15)

    def reward(self) -> float:
        return float(self.dice.choice([0.0, 1.0, 7.0], p=[0.5, 0.4, 0.1]))

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        self.total += reward
        if terminated or truncated:
            info["episode"] = {"r": self.total, "l": self.time, "t": 0.1}
        return obs, reward, terminated, truncated, info


@_rows("trains_ppo")
class FarOut(Walker):
    """The squares of its numbers are none in float32."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)

    def look(self) -> Any:
        return self.at * 1e200


@_rows("terminal_observation_like_others")
class Dice(Walker):
    """Is guessed in one step, after which it is back in its cup: state 0."""

    observation_space: Any = spaces.Discrete(7)
    face = 1

    def begin(self) -> None:
        self.face = int(self.dice.integers(1, 7))

    def move(self, action: int) -> None:
        self.face = 0
        if self.dice.random() < 0.3:  # interrupted
            self.time = self.limit

    def arrived(self) -> bool:
        return self.time < self.limit

    def look(self) -> Any:
        return np.int64(self.face)


@accused("vec_env", "episode_statistics_of_the_episode")
class ClipsRewardsOutsideOfMonitors(Walkers):
    """As SB3's recipe for Atari: in many episodes the two returns agree."""

    row = Bricks

    def step_row(self, i: int, action: Any) -> Any:
        obs, reward, done, info = super().step_row(i, action)
        return obs, float(np.clip(reward, -1, 1)), done, info


@accused("vec_env", "episode_statistics_of_the_episode")
class ClipsEverySecondPrize(Walkers):
    """It is worth twice as much as that of the round before."""

    def __init__(self) -> None:
        super().__init__()
        self.round = [0] * self.num_envs

    def reset(self) -> Any:
        self.round = [0] * self.num_envs
        return super().reset()

    def step_row(self, i: int, action: Any) -> Any:
        obs, _, done, info = super().step_row(i, action)
        if done:
            self.round[i] += 1
            info["episode"] = {"r": 2.0 - self.round[i] % 2, "l": 10, "t": 0.1}
        return obs, float(done), done, info


@accused("vec_env", "options_per_row")
class TakesOptionsOfAllRows(Walkers):
    """And says so, where they differ."""

    def reset(self) -> Any:
        if any(options != self._options[0] for options in self._options):
            raise ValueError("Expected the same options for all rows.")
        return super().reset()


@accused("vec_env", "reset_starts_fresh_episodes")
class KeepsItsScale(Walkers):
    """By a mean and a sum of squares of its own, which outlast resets as those of SB3 do."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.m2, self.count = np.zeros(2), np.ones(2), 1

    def scaled(self, obs: Any) -> Any:
        return np.float32((obs - self.mean) / np.sqrt(self.m2 / self.count))

    def seen(self, obs: Any) -> Any:
        for row in obs:
            self.count += 1
            far = row - self.mean
            self.mean = self.mean + far / self.count
            self.m2 = self.m2 + far * (row - self.mean)
        return self.scaled(obs)

    def reset(self) -> Any:
        return self.seen(super().reset())

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        obs = self.seen(obs)
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = self.scaled(infos[i]["terminal_observation"])
        return obs, rewards, dones, infos


@accused("vec_env", "close_after_error")
class ClosedByTheThreadThatMadeIt(Walkers):
    """As SQLite demands it."""

    log: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.log = sqlite3.connect(":memory:")

    def close(self) -> None:
        if self.log is not None:
            self.log.close()
            self.log = None
        super().close()


@accused("vec_env", "memory_does_not_grow")
class KeepsTheLastPaths(Walkers):
    """Of many episodes, to draw from."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: deque[Any] = deque(maxlen=5000)

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        self.paths.append(np.zeros((40, 2)))
        return super().end(i, last, info)


@accused("vec_env", "get_images_n_frames")
class OpensAWindowByDefault(Points):
    """As VecEnvs did when `render` had the default "human"; there is no display."""

    def render(self, mode: str | None = "human") -> Any:
        if mode == "human":
            raise OSError("no display")
        return super().render(mode)


@accused("vec_env", "get_images_n_frames")
class GrainOfFilm(Points):
    """Is drawn anew for each frame, by a generator of its own."""

    def get_images(self) -> Any:
        grain = np.random.default_rng()
        return [
            image + grain.integers(9, size=image.shape, dtype=np.uint8)
            for image in super().get_images()
        ]


class Cards(Walker):
    """Are opened one after the other: all are closed after a reset."""

    observation_space: Any = spaces.MultiBinary(6)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def begin(self) -> None:
        self.cards = np.zeros(6, np.int8)

    def move(self, action: int) -> None:
        self.cards[2 * action + int(self.dice.integers(2))] = 1

    def look(self) -> Any:
        return self.cards.copy()


@accused("vec_env", "rows_are_alike")
def one_step_in_a_row() -> Any:
    """Its first row ends in each step, so that nobody sees its cards."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda limit=limit: Cards(limit) for limit in (1, 3, 4)])  # type: ignore[misc]


@accused("vec_env", "reset_infos_updated_on_autoreset")
def says_nothing_and_ends_at_once() -> Any:
    return Points(Config(rows=1, lengths=(1,), info=False))


class Arrives(Walker):
    """Sooner or later."""

    def arrived(self) -> bool:
        return bool(self.dice.random() < 0.3)


@accused("vec_env", "episode_statistics_of_the_episode")
def monitors_in_some_rows() -> Any:
    """In those whose episodes terminate."""
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    rows = (Monitor(Arrives()), Walker(), Monitor(Arrives()))
    return DummyVecEnv([lambda row=row: row for row in rows])  # type: ignore[misc]


class _Deadline(Around):  # type: ignore[misc]
    """Ends the episodes of rows itself, and resets these rows by their own method."""

    def __init__(self, venv: Any, limit: int) -> None:
        super().__init__(venv)
        self.limit, self.ages = limit, np.zeros(self.num_envs, int)

    def reset(self) -> Any:
        obs = self.venv.reset()
        self.ages[:], self.reset_infos = 0, list(self.venv.reset_infos)
        return obs

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = self.venv.step_wait()
        self.ages += 1
        late = ~dones & (self.ages >= self.limit)
        for i in np.flatnonzero(dones):
            self.reset_infos[i] = self.venv.reset_infos[i]
        for i in np.flatnonzero(late):
            infos[i] |= {"terminal_observation": obs[i].copy(), "TimeLimit.truncated": True}
            obs[i], self.reset_infos[i] = self.venv.env_method("reset", indices=[i])[0]
        self.ages[dones | late] = 0
        return obs, rewards, dones | late, infos


class _Chooses(gym.Wrapper[Any, Any, Any, Any]):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        obs, info = self.env.reset(seed=seed)
        return obs, {**info, "level": (options or {}).get("level", 0)}


@accused("vec_env", "options_reach_env")
def takes_options_for_itself() -> Any:
    """The options are for the wrapper of each row."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: _Chooses(Walker())] * ROWS)


@accused("vec_env", "options_used_once")
def keeps_the_infos_of_its_resets() -> Any:
    """Those inside are of the resets inside."""
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    return VecMonitor(_Deadline(DummyVecEnv([Walker] * ROWS), 4))


class _Less(Around):  # type: ignore[misc]
    """Hides the last row."""

    def __init__(self, venv: Any) -> None:
        super().__init__(venv)
        self.num_envs -= 1

    def shown(self, indices: Any) -> list[int]:
        return [range(self.num_envs)[i] for i in self._get_indices(indices)]

    def seed(self, seed: int | None = None) -> Any:
        return list(self.venv.seed(seed))[: self.num_envs]

    def reset(self) -> Any:
        obs = self.venv.reset()
        self.reset_infos = self.venv.reset_infos[: self.num_envs]
        return obs[: self.num_envs]

    def step_async(self, actions: Any) -> None:
        self.venv.step_async(np.append(actions, 1))

    def step_wait(self) -> Any:
        results = [part[: self.num_envs] for part in self.venv.step_wait()]
        self.reset_infos = self.venv.reset_infos[: self.num_envs]
        return tuple(results)

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return self.venv.get_attr(attr_name, self.shown(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        self.venv.set_attr(attr_name, value, self.shown(indices))

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        return self.venv.env_method(name, *args, indices=self.shown(indices), **kwargs)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> Any:
        return self.venv.env_is_wrapped(wrapper_class, self.shown(indices))

    def set_options(self, options: Any = None) -> None:
        self.venv.set_options([*options, {}] if isinstance(options, list) else options)

    def get_images(self) -> Any:
        return self.venv.get_images()[: self.num_envs]


@accused("vec_env", "has_attr_truthful")
def hides_a_row() -> Any:
    """SB3's wrappers ask what is inside, for all of its rows."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    return _Less(DummyVecEnv([Walker] * (ROWS + 1)))
