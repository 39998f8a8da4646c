"""Small changes of a correct VectorEnv that each break one thing: `MUTANTS`, by name and mode.

The kit has to fail each with the checks that are named, and with no other. Those at the end of an
episode are in `vector_env_endings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space

from conformance.mutants import vector_env_endings
from conformance.mutants.rows_env import Form, RowEnv, RowsEnv
from conformance.mutants.vector_env_registry import MUTANTS, mutant

__all__ = ["MUTANTS", "vector_env_endings"]

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


@mutant("wrong_action_count_rejected")
class ActionsCutOff(RowsEnv):
    def step(self, actions: Any) -> Any:
        return super().step(np.resize(actions, self.num_envs))

    def check_actions(self, actions: Any) -> None:
        pass


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


@mutant("info_masks", modes=("NextStep", "SameStep"), referenced=True, lengths=(3, 4, 2))
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


@mutant("info_values_keep_type", referenced=True)
class InfosCast(RowsEnv):
    def step(self, actions: Any) -> Any:
        *result, infos = super().step(actions)
        if "x" in infos:
            infos["x"] = np.round(infos["x"])
        return *result, infos


# Seeds, options, resets


@mutant("same_seed_same_trajectory")
class DrawsFromTheGlobalGenerator(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        self.rows[i].x += np.random.uniform(0, 0.1)
        super().step_row(i, action)


@mutant("same_seed_same_trajectory")
class IgnoresSeeds(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return [None] * self.num_envs


@mutant("seed_used_once")
class SeedKept(RowsEnv):
    def make_row(self, i: int) -> RowEnv:
        class Row(RowEnv):
            kept: Any = None

            def reset(self, *, seed: Any = None, options: Any = None) -> Any:
                self.kept = self.kept if seed is None else seed
                return super().reset(seed=self.kept, options=options)

        return Row(self.form, i)


@mutant("seed_int_is_seed_plus_i")
class SameSeedInAllRows(RowsEnv):
    def seeds(self, seed: Any) -> list[Any]:
        return super().seeds([seed] * self.num_envs if isinstance(seed, int) else seed)


@mutant("seed_int_is_seed_plus_i", referenced=True, one_generator=True, sub_envs=False)
class OneGeneratorForAll(RowsEnv):
    pass


@mutant("reset_clears_pending_autoreset", modes=("NextStep", "Disabled"))
class PendingAfterReset(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        if masked or not self.pending.any():
            super().clear(rows, masked)


@mutant("reset_clears_pending_autoreset", modes=("SameStep",))
class EndedRowsStartTwice(RowsEnv):
    """It notes which rows have just ended, and after a `reset()` takes that for a task."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        result = super().reset(seed=seed, options=options)
        if "reset_mask" not in (options or {}):
            self.pending[list(getattr(self, "finals", ()))] = True
        return result

    def advance(self, actions: list[Any]) -> None:
        super().advance(actions)
        self.pending[:] = False


@mutant("reset_clears_counters", lengths=(9, 14, 20))
class CounterGoesOn(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        before = [row.done for row in self.rows]
        result = super().reset(seed=seed, options=options)
        if "reset_mask" not in (options or {}):
            for row, done in zip(self.rows, before, strict=True):
                row.done = done if done < row.length else 0
        return result


@mutant("options_not_mutated")
class PopsOptions(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        result = super().reset(seed=seed, options=options)
        if options is not None:
            options.clear()
            options["seen"] = True
        return result


@mutant("options_reach_env", options={"offset": 100})
class DropsOptions(RowsEnv):
    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        return super().begin(i, seed, {})


# Masked resets


@mutant("masked_reset_leaves_others", declared={"masked_reset": True})
class MaskedResetReturnsZeros(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        obs, infos = super().reset(seed=seed, options=options)
        if "reset_mask" in (options or {}):
            obs[~options["reset_mask"]] = 0
        return obs, infos


@mutant("masked_reset_lets_others_go_on", lengths=(6, 9, 14))
class MaskedResetClearsAllCounters(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        # Not in the resets that the caller has to ask for.
        if masked and not self.pending.any():
            for row in self.rows:
                row.done = 0
        super().clear(rows, masked)


@mutant("masked_reset_lets_others_go_on", modes=("NextStep",), lengths=(4, 4, 9))
class MaskedResetClearsAllPending(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        super().clear(np.ones_like(rows), masked)


@mutant("masked_reset_restarts_masked")
class MaskedResetWithoutSeed(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        masked = "reset_mask" in (options or {})
        return super().reset(seed=None if masked else seed, options=options)


@mutant("masked_reset_restarts_masked", modes=("NextStep",))
class PendingAfterMaskedReset(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        if not masked:
            super().clear(rows, masked)


@mutant("bad_mask_rejected")
class AnyMask(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if "reset_mask" in (options or {}):
            mask = np.resize(options["reset_mask"], self.num_envs).astype(bool)
            options = {**options, "reset_mask": mask}
        return super().reset(seed=seed, options=options)


# Rows


class _Freezes(RowsEnv):
    """Leaves a step of all rows out while one of them ends or is reset."""

    def advance(self, actions: list[Any]) -> None:
        before = [(row.x, row.done) for row in self.rows]
        held, resetting = list(self.obs), self.pending.copy()
        super().advance(actions)
        moved = resetting if self.form.mode == "NextStep" else self.flags.any(axis=0)
        if moved.any():
            for i in np.flatnonzero(~moved):
                self.obs[i] = held[i]
                self.rows[i].x, self.rows[i].done = before[i]
                self.flags[:, i] = False


@mutant("rows_independent", lengths=(3, 20, 30))
class OthersFreeze(_Freezes):
    pass


@mutant("rows_independent", lengths=(15, 60, 70), one_generator=True, sub_envs=False)
class OthersFreezeWithOneGenerator(_Freezes):
    pass


@mutant("rows_match_reference", referenced=True)
class RewardsAreInts(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, rewards, *rest = super().step(actions)
        return obs, rewards.astype(int), *rest


@mutant("rows_match_reference", referenced=True)
class NeverTruncates(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        if self.flags[1, i]:
            self.flags[:, i] = True, False


# Access, rendering, life


@mutant("call_get_set_attr")
class ListInEachRow(RowsEnv):
    def set_attr(self, name: str, values: Any) -> None:
        for row in self.rows:
            setattr(row, name, values)


@mutant("call_get_set_attr")
class BackToFront(RowsEnv):
    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return super().call(name, *args, **kwargs)[::-1]


@mutant("render_n_frames")
class OneFrame(RowsEnv):
    def render(self) -> Any:
        return np.concatenate(super().render())


@mutant("render_n_frames")
class FramesWithoutColour(RowsEnv):
    def render(self) -> Any:
        return tuple(frame[..., 0] for frame in super().render())


@mutant("close_idempotent")
class ClosesOnce(RowsEnv):
    def close(self, **kwargs: Any) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        super().close(**kwargs)


class _Closing(VectorWrapper):  # not generic in Gymnasium 1.1
    def __del__(self) -> None:
        self.env.close()


@mutant("wrapper_deletion_keeps_env_open", wrap=_Closing)
class ClosedByWrapper(RowsEnv):
    pass
