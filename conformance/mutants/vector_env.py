"""Small changes of a correct VectorEnv that each break one thing: `MUTANTS`, by name and mode.

The kit has to fail each with the checks that are named, and with no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from conformance.mutants.rows_env import MODES, Form, RowEnv, RowsEnv, reference

Maker = Callable[[], VectorEnv[Any, Any, Any]]


@dataclass(frozen=True)
class Mutant:
    """One broken environment.

    Attributes:
        factory: Makes it.
        fails: The ids of the checks that it must fail.
        may_fail: Ids of others that it may fail; it passes all the rest.
        mode: The value of its autoreset mode.
        reference: Its single environments as they should be, where they are to be given.
        options: Options that it should understand.
        declared: Capabilities that are declared.
    """

    factory: Maker
    fails: frozenset[str]
    mode: str
    reference: Any = None
    options: dict[str, Any] | None = None
    declared: dict[str, bool] = field(default_factory=dict)
    may_fail: frozenset[str] = frozenset()

    @property
    def given(self) -> dict[str, Any]:
        """What the user tells the kit."""
        return {
            "reference": self.reference,
            "options": self.options,
            "declared": self.declared,
        }


MUTANTS: dict[str, Mutant] = {}


def mutant(
    *fails: str,
    may_fail: Iterable[str] = (),
    modes: Iterable[str] = MODES,
    referenced: bool = False,
    options: dict[str, Any] | None = None,
    declared: dict[str, bool] | None = None,
    wrap: Callable[[Any], Any] | None = None,
    **form: Any,
) -> Callable[[type[RowsEnv]], type[RowsEnv]]:
    """Register a class as a mutant that fails these checks in these modes."""

    def register(cls: type[RowsEnv]) -> type[RowsEnv]:
        for mode in modes:
            shape = Form(**{"mode": mode, **form})

            def make(shape: Form = shape) -> Any:
                env = cls(shape)
                return wrap(env) if wrap else env

            MUTANTS[f"{cls.__name__}-{mode}"] = Mutant(
                make,
                frozenset(fails),
                mode,
                reference(shape) if referenced else None,
                options,
                dict(declared or {}),
                frozenset(may_fail),
            )
        return cls

    return register


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


@mutant("batched_spaces_match_single", "obs_in_batched_space")  # the space is the wrong one
class SingleSpaceForAll(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.observation_space = self.single_observation_space


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


# The end of an episode


@mutant("autoreset_mode_matches_behaviour", modes=("NextStep", "Disabled"))
class IsSameStep(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(Form(mode="SameStep"))
        self.autoreset_mode = AutoresetMode(form.mode)
        self.metadata["autoreset_mode"] = self.autoreset_mode


# Whatever goes on after an end raises.
@mutant(
    "autoreset_mode_matches_behaviour",
    modes=("NextStep", "SameStep"),
    may_fail=(
        "masked_reset_leaves_others",
        "outputs_unchanged_by_later_steps",
        "same_seed_same_trajectory",
    ),
)
class IsDisabled(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(Form(mode="Disabled"))
        self.autoreset_mode = AutoresetMode(form.mode)
        self.metadata["autoreset_mode"] = self.autoreset_mode


@mutant("autoreset_mode_matches_behaviour", modes=("SameStep",))
class IsNextStep(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(Form(mode="NextStep"))
        self.autoreset_mode = AutoresetMode(form.mode)
        self.metadata["autoreset_mode"] = self.autoreset_mode


class _ResetsAtOnce(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        if self.flags[:, i].any():
            self.obs[i], _ = self.rows[i].reset()


# A reset() in the place of the step after the ending is the second one here.
@mutant("done_step_returns_final_obs", "one_reset_per_episode", modes=("NextStep",))
class FirstObsTwice(_ResetsAtOnce):
    def reset_step(self, i: int, action: Any) -> None:
        self.infos = self.add_info(self.infos, {"start": self.rows[i].x}, i)


# It is reset twice, too.
@mutant(
    "done_step_returns_final_obs", "one_reset_per_episode", modes=("NextStep",), referenced=True
)
class ResetsAtOnceAndAgain(_ResetsAtOnce):
    pass


@mutant("reset_step_ignores_action", modes=("NextStep",))
class ActsAfterReset(RowsEnv):
    def reset_step(self, i: int, action: Any) -> None:
        super().reset_step(i, action)
        self.obs[i] = self.rows[i].step(action)[0]


@mutant("reset_step_reward_zero", modes=("NextStep",))
class RewardInResetStep(RowsEnv):
    def reset_step(self, i: int, action: Any) -> None:
        super().reset_step(i, action)
        self.rewards[i] = 1


@mutant("reset_step_flags_false", modes=("NextStep",))
class FlagInResetStep(RowsEnv):
    def step(self, actions: Any) -> Any:
        again = self.pending.copy()
        obs, rewards, terminations, truncations, infos = super().step(actions)
        return obs, rewards, terminations, truncations | again, infos


@mutant("one_reset_per_episode", modes=("NextStep",))
class ResetsTwice(RowsEnv):
    def reset_step(self, i: int, action: Any) -> None:
        self.rows[i].reset()
        super().reset_step(i, action)


@mutant("one_reset_per_episode", modes=("NextStep",), referenced=True)
class ResetsOnceMoreLater(RowsEnv):
    def advance(self, actions: list[Any]) -> None:
        again, self.again = getattr(self, "again", ()), np.flatnonzero(self.pending)
        super().advance(actions)
        for i in again:
            self.obs[i], _ = self.rows[i].reset()


@mutant("final_obs_present", modes=("SameStep",))
class NoFinalObs(RowsEnv):
    def add_finals(self) -> None:
        for i, (_, info) in self.finals.items():
            self.infos = self.add_info(self.infos, {"final_info": info}, i)


@mutant("final_obs_present", modes=("SameStep",))
class FinalObsUnderTheOldName(RowsEnv):
    def add_finals(self) -> None:
        super().add_finals()
        self.infos["final_observation"] = self.infos.pop("final_obs")
        self.infos["_final_observation"] = self.infos.pop("_final_obs")


@mutant("final_obs_in_space", modes=("SameStep",))
class FinalObsNotTransformed(RowsEnv):
    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        info = super().restart(i, info)
        self.finals[i] = self.finals[i][0] * 1e6, self.finals[i][1]
        return info


@mutant("final_obs_mask_equals_done", modes=("SameStep",))
class FinalObsWithoutMask(RowsEnv):
    def add_finals(self) -> None:
        super().add_finals()
        del self.infos["_final_obs"]


@mutant("final_obs_mask_equals_done", modes=("SameStep",))
class FinalObsMaskOfTerminations(RowsEnv):
    def add_finals(self) -> None:
        super().add_finals()
        self.infos["_final_obs"] = self.flags[0].copy()


class _FinalObsIsFirst(RowsEnv):
    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        info = super().restart(i, info)
        self.finals[i] = self.obs[i], self.finals[i][1]
        return info


@mutant("final_obs_not_aliased", modes=("SameStep",))
class FinalObsOverwritten(_FinalObsIsFirst):
    pass


@mutant("final_obs_not_aliased", modes=("SameStep",), referenced=True)
class FinalObsOverwrittenWithReference(_FinalObsIsFirst):
    pass


@mutant("final_obs_not_aliased", modes=("SameStep",))
class FinalObsInOneBuffer(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, *rest, infos = super().step(actions)
        for final in getattr(self, "kept", ()):
            if final is not None:
                final[...] = -1
        self.kept = infos.get("final_obs", ())
        return obs, *rest, infos


@mutant("final_info_is_step_info", modes=("SameStep",))
class NoFinalInfo(RowsEnv):
    def add_finals(self) -> None:
        for i, (obs, _) in self.finals.items():
            self.infos = self.add_info(self.infos, {"final_obs": obs}, i)


class _InfosSwapped(RowsEnv):
    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        reset_info = super().restart(i, info)
        self.finals[i] = self.finals[i][0], reset_info
        return info


# With single environments at hand it shows that rows have other keys than they should.
@mutant("final_info_is_step_info", modes=("SameStep",))
class InfosSwapped(_InfosSwapped):
    pass


@mutant("final_info_is_step_info", "info_masks", modes=("SameStep",), referenced=True)
class InfosSwappedWithReference(_InfosSwapped):
    pass


class _LastObsShown(RowsEnv):
    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        info = super().restart(i, info)
        self.obs[i] = self.finals[i][0]
        return info


@mutant("obs_is_reset_obs", modes=("SameStep",))
class LastObsShown(_LastObsShown):
    pass


@mutant("obs_is_reset_obs", modes=("SameStep",), referenced=True)
class LastObsShownWithReference(_LastObsShown):
    pass


@mutant("no_reset_unasked", modes=("Disabled",))
class ResetsUnasked(_ResetsAtOnce):
    pass


@mutant("no_reset_unasked", modes=("Disabled",))
class ResetsUnaskedInstead(_ResetsAtOnce):
    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        if self.pending[i] and seed is None:
            return {"start": self.rows[i].x}
        return super().begin(i, seed, options)


# What lets a step through and resets the row breaks both.
@mutant("no_reset_unasked", "stepping_ended_row_rejected", modes=("Disabled",))
class ResetsInTheNextStep(RowsEnv):
    def refuse_ended(self) -> None:
        pass


@mutant("stepping_ended_row_rejected", modes=("Disabled",))
class StepsOn(RowsEnv):
    def refuse_ended(self) -> None:
        self.pending[:] = False


@mutant("masked_reset_restarts_only_masked", modes=("Disabled",), lengths=(3, 5, 3))
class MaskedResetClearsAll(RowsEnv):
    def clear(self, rows: Any, masked: bool) -> None:
        self.pending[:] = False


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
