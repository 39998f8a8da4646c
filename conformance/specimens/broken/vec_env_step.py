"""Mutants: spaces, `reset` and `step`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from conformance.specimens.points import Config, Point, Points, stack
from conformance.specimens.registry import vec_env_mutant as mutant

DICTS = Config(observation="dict")
# SB3 has no networks for these: what its algorithms, too, would fall over is not trained on.
UNTRAINED = Config(observation="integer")
TRAINING = ("trains_ppo", "trains_off_policy")

# Spaces


@mutant("num_envs_positive", config=UNTRAINED)
class CountsInFloats(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.num_envs = _Float(self.num_envs)


class _Float(float):
    """A float that can be used where Python wants an integer, as some array scalars can."""

    def __index__(self) -> int:
        return int(self)


# Networks are built from the space, which fits nothing that they get.
@mutant("spaces_are_single", may_fail=TRAINING)
class BatchedObservationSpace(Points):
    def batch(self, observations: list[Any]) -> Any:
        return stack(observations, self.envs[0].observation_space)

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.observation_space = gym.vector.utils.batch_space(self.observation_space, self.num_envs)


@mutant("spaces_are_single", config=Config(continuous=True))
class BatchedActionSpace(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.action_space = gym.vector.utils.batch_space(self.action_space, self.num_envs)


@mutant("render_mode_uniform")
class RendersNothingWhereRowsDo(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.render_mode = None


# SB3's wrappers ask the rows for it, too.
@mutant(
    "render_mode_uniform",
    "works_under_vec_monitor",
    "works_under_vec_normalize",
    "works_under_vec_frame_stack",
    "works_under_vec_check_nan",
)
class OneRowRendersText(Points):
    def make_row(self, row: int) -> Any:
        env = super().make_row(row)
        if row == 1:
            env.render_mode = "ansi"
        return env


@mutant("metadata_is_dict")
class NoMetadata(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.metadata = None


class Alike:
    """Has all the methods of a VecEnv, but is none."""

    def __init__(self, config: Config) -> None:
        self._made = Points(config)

    def __getattr__(self, name: str) -> Any:
        if name == "_made":
            raise AttributeError(name)
        return getattr(self._made, name)


mutant("subclasses_vec_env")(Alike)


# Reset


@mutant("reset_returns_obs_only")
class ResetsAsGymnasiumDoes(Points):
    def reset(self) -> Any:
        return super().reset(), {}


@mutant("reset_obs_in_space")
class ResetsOutOfBounds(Points):
    def reset(self) -> Any:
        return super().reset() + np.float32(100)


# PPO looks up the space of each key.
@mutant("reset_obs_in_space", may_fail=TRAINING[:1], config=DICTS)
class ResetsWithOneKeyMore(Points):
    def reset(self) -> Any:
        return {**super().reset(), "more": np.zeros(self.num_envs)}


@mutant("obs_dtype_matches_space")
class DoublePrecision(Points):
    def batch(self, observations: list[Any]) -> Any:
        return np.array(observations, np.float64)


@mutant("reset_infos_n_dicts")
class OneResetInfoTooMany(Points):
    def reset(self) -> Any:
        obs = super().reset()
        self.reset_infos = [*self.reset_infos[: self.num_envs], {}]
        return obs


@mutant("reset_starts_fresh_episodes")
class ResetLeavesTheClock(Points):
    def start(self, i: int) -> Any:
        time = self.envs[i].unwrapped.time
        obs = super().start(i)
        self.envs[i].unwrapped.time = time
        return obs


class _CountsOn(Point):
    """It has a time limit of 15 steps, and a reset does not set the number of steps back."""

    taken = 0

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        self.taken += 1
        truncated = truncated or self.taken == 15
        if terminated or truncated:
            self.taken = 0
        return obs, reward, terminated, truncated, info


# The limit is far from the first end.
@mutant(
    "reset_starts_fresh_episodes",
    may_fail=("rows_independent",),
    config=Config(lengths=(1000, 3, 1000)),
)
class LimitCountsOn(Points):
    row = _CountsOn


@mutant("reset_starts_fresh_episodes", config=Config(lengths=(20, 3, 20)))
class StartDrawnAhead(Points):
    """A row that has gone far draws its next start, and a seed does not discard it."""

    def start(self, i: int) -> Any:
        far = 5 < self.envs[i].unwrapped.time < 20
        obs = super().start(i)
        return self.envs[i].reset()[0] if far else obs


# Step


@mutant("step_returns_four")
class StepsAsGymnasiumDoes(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, np.zeros_like(dones), infos


@mutant("rewards_shape", config=UNTRAINED)
class RewardsInAColumn(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards[:, None], dones, infos


@mutant("rewards_float32")
class RewardsInDoublePrecision(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards.astype(np.float64), dones, infos


@mutant("dones_shape")
class DonesInAColumn(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones[:, None], infos


@mutant("dones_bool_array")
class DonesAsNumbers(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones.astype(int), infos


@mutant("infos_n_dicts", config=UNTRAINED)
class OneInfoForAll(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, {"time": [info["time"] for info in infos]}


@mutant("infos_is_list")
class InfosInATuple(Points):
    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, tuple(infos)


@mutant("infos_distinct", config=Config(lengths=(4,), ends=("truncated",), info=False))
class OneInfoManyTimes(Points):
    """Rows that run get the very same dict; it stays true what it says."""

    def results(self, obs: Any, rewards: Any, dones: Any, infos: Any) -> Any:
        return obs, rewards, dones, infos if dones.any() else [infos[0]] * self.num_envs


@mutant("step_obs_in_space")
class StepsOutOfBounds(Points):
    def batch(self, observations: list[Any]) -> Any:
        obs = super().batch(observations)
        return obs + np.float32(100) if self.stepping else obs

    stepping = False

    def step_wait(self) -> Any:
        self.stepping = True
        result = super().step_wait()
        self.stepping = False
        return result

    def reset(self) -> Any:
        self.stepping = False
        return super().reset()


@mutant("step_equals_async_wait")
class StepForgetsToCount(Points):
    def step(self, actions: Any) -> Any:
        obs, rewards, dones, infos = super().step(actions)
        return obs, rewards / 2, dones, infos


@mutant("wrong_action_count_rejected")
class Broadcasts(Points):
    def step_async(self, actions: Any) -> None:
        few = len(actions) < self.num_envs
        super().step_async([1] * self.num_envs if few else actions)


@mutant("wrong_action_count_rejected")
class OneActionForAll(Points):
    def step_async(self, actions: Any) -> None:
        super().step_async([*actions] * (self.num_envs if len(actions) == 1 else 1))


@mutant("double_step_async_rejected")
class QueuesSteps(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.queue: list[Any] = []

    def step_async(self, actions: Any) -> None:
        super().step_async(actions)
        self.queue.append(super().step_wait())

    def step_wait(self) -> Any:
        return self.queue.pop(0)

    def reset(self) -> Any:
        self.queue.clear()
        return super().reset()


@mutant("step_wait_without_async_rejected")
class WaitsForNothing(Points):
    def step_wait(self) -> Any:
        if self.pending is None:
            self.pending = [self.action_space.sample() for _ in self.envs]
        return super().step_wait()


@mutant("reset_cancels_pending_step")
class ResetFinishesTheStep(Points):
    def reset(self) -> Any:
        pending = self.pending
        obs = super().reset()
        if pending is not None:
            self.pending = pending
            obs = super().step_wait()[0]
        return obs
