"""Mutants of declarations, spaces, results and infos of a VectorEnv."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from conformance.specimens.registry import vector_env_mutant as mutant
from conformance.specimens.rows_env import Form, RowsEnv

# Declarations and spaces


@mutant("autoreset_mode_declared")
class NoModeDeclared(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        del self.metadata["autoreset_mode"]


@mutant("autoreset_mode_declared")
class ModeIsString(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.metadata["autoreset_mode"] = form.mode


@mutant("metadata_not_shared")
class MetadataOfTheClass(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.metadata = type(self).metadata
        self.metadata["autoreset_mode"] = self.autoreset_mode


@mutant("batched_spaces_match_single")
class FewerActions(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.action_space = batch_space(spaces.Discrete(2), self.num_envs)


@mutant("batched_spaces_match_single")
class MoreActions(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.action_space = batch_space(spaces.Discrete(4), self.num_envs)


@mutant("batched_spaces_match_single")
class ActionsWithoutTheirStart(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.single_action_space = spaces.Discrete(3, start=-1)


@mutant("batched_spaces_match_single")
class SingleSpaceForAll(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.observation_space = self.single_observation_space


@mutant("batched_spaces_match_single")
class SingleActionSpaceForAll(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.action_space = self.single_action_space

    def step(self, actions: Any) -> Any:
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        result = super().step(actions)
        self.action_space = self.single_action_space
        return result


# Reset and step


@mutant("reset_returns_two")
class ResetReturnsObs(RowsEnv):
    def reset(self, **kwargs: Any) -> Any:
        return super().reset(**kwargs)[0]


@mutant("step_returns_five")
class StepReturnsFour(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations | truncations, infos


@mutant("obs_in_batched_space")
class OutOfBounds(RowsEnv):
    def batch(self) -> Any:
        obs = super().batch()
        obs[self.first_step()] += 5000
        return obs

    def first_step(self) -> Any:
        return np.array([row.done == 1 for row in self.rows])


@mutant("obs_in_batched_space")
class ObsWithAnotherAxis(RowsEnv):
    def batch(self) -> Any:
        return super().batch()[..., None]


@mutant("obs_dtype_matches_space")
class ObsFloat64(RowsEnv):
    def batch(self) -> Any:
        return super().batch().astype(np.float64)


@mutant("rewards_shape")
class RewardColumn(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, *rest = super().step(actions)
        return obs, rewards[:, None], *rest


@mutant("flags_shape")
class FlagColumn(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations[:, None], truncations[:, None], infos


@mutant("flags_shape")
class OneFlagForAll(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations, bool(truncations.any()), infos


@mutant("flags_are_bool")
class FlagsAreInts(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations.astype(int), truncations.astype(int), infos


@mutant("outputs_unchanged_by_later_steps")
class ObsInOneBuffer(RowsEnv):
    buffer: Any = None

    def batch(self) -> Any:
        obs = super().batch()
        self.buffer = obs if self.buffer is None else self.buffer
        self.buffer[...] = obs
        return self.buffer


@mutant("outputs_unchanged_by_later_steps")
class RewardsInOneBuffer(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, *rest = super().step(actions)
        self.buffer = getattr(self, "buffer", rewards)
        self.buffer[...] = rewards
        return obs, self.buffer, *rest


@mutant("outputs_unchanged_by_later_steps")
class TimesInOneBuffer(RowsEnv):
    def step(self, actions: Any) -> Any:
        *rest, infos = super().step(actions)
        self.times = getattr(self, "times", np.zeros(self.num_envs))
        self.times += 1
        return *rest, {**infos, "times": self.times}


@mutant("wrong_action_count_rejected")
class ActionsCutOff(RowsEnv):
    def step(self, actions: Any) -> Any:
        return super().step(np.resize(actions, self.num_envs))

    def check_actions(self, actions: Any) -> None:
        pass


@mutant("wrong_action_count_rejected")
class OneActionForAll(RowsEnv):
    def step(self, actions: Any) -> Any:
        return super().step(np.broadcast_to(actions, (self.num_envs,)))


@mutant("no_stale_result_after_error")
class StaleResult(RowsEnv):
    stale: Any = None

    def step(self, actions: Any) -> Any:
        if len(actions) != self.num_envs:
            self.stale = super().step(actions[: self.num_envs])
            raise ValueError("too many")
        if self.stale is not None:
            late, self.stale = self.stale, super().step(actions)
            return late
        return super().step(actions)


@mutant("no_stale_result_after_error")
class StaleButForObservations(StaleResult):
    """Observations come by another way than the rest, and in time."""

    def step(self, actions: Any) -> Any:
        late = super().step(actions)
        return (self.stale or late)[0], *late[1:]


# Infos


@mutant("info_masks")
class MaskOfInts(RowsEnv):
    def add_info(self, infos: dict[str, Any], info: dict[str, Any], i: int) -> dict[str, Any]:
        infos = super().add_info(infos, info, i)
        return {k: v.astype(int) if k in ("_x", "_start") else v for k, v in infos.items()}


@mutant(
    "info_masks",
    modes=("NextStep", "SameStep"),
    referenced=True,
    untold="a row may have a key in any step: only its single environment says when",
    lengths=(3, 4, 2),
)
class MaskAlwaysTrue(RowsEnv):
    def step(self, actions: Any) -> Any:
        *result, infos = super().step(actions)
        if "_start" in infos:
            infos["_start"] = np.ones(self.num_envs, bool)
        return *result, infos


@mutant("info_values_batched")
class ScalarInfo(RowsEnv):
    def step(self, actions: Any) -> Any:
        *result, infos = super().step(actions)
        return *result, {**infos, "temperature": 20.5}


@mutant(
    "info_values_keep_type",
    referenced=True,
    untold="the values before they are cast are those of the single environments only",
)
class InfosCast(RowsEnv):
    def step(self, actions: Any) -> Any:
        *result, infos = super().step(actions)
        if "x" in infos:
            infos["x"] = np.round(infos["x"])
        return *result, infos
