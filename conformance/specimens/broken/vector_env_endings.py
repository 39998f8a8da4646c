"""Mutants of a VectorEnv that are wrong at the end of an episode."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from conformance.specimens.registry import vector_env_mutant as mutant
from conformance.specimens.rows_env import Form, RowEnv, RowsEnv


@mutant("autoreset_mode_matches_behaviour", modes=("NextStep", "Disabled"))
class IsSameStep(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(Form(mode="SameStep"))
        self.autoreset_mode = AutoresetMode(form.mode)
        self.metadata["autoreset_mode"] = self.autoreset_mode


@mutant("autoreset_mode_matches_behaviour", modes=("NextStep", "SameStep"))
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


@mutant("done_step_returns_final_obs", modes=("NextStep",))
class ShowsTheNextFirstObs(RowsEnv):
    """Without a reset: it knows where the next episode will begin."""

    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        if self.flags[:, i].any():
            self.obs[i], _ = deepcopy(self.rows[i]).reset()


@mutant("done_step_returns_final_obs", modes=("NextStep",), endings=("truncated", "both"))
class LastObsIsStale(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        before = self.obs[i]
        super().step_row(i, action)
        if self.flags[:, i].any():
            self.obs[i] = before


@mutant("reset_step_ignores_action", modes=("NextStep",))
class ActsAfterReset(RowsEnv):
    def reset_step(self, i: int, action: Any) -> None:
        super().reset_step(i, action)
        self.obs[i] = self.rows[i].step(action)[0]


@mutant("reset_step_ignores_action", modes=("NextStep",), may_fail=("nothing_kept_over_ends",))
class JerksFromTheResetStep(RowsEnv):
    """The action of the reset step counts as the last one of the episode that it begins."""

    last: dict[int, int]

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        self.last = {**getattr(self, "last", {}), i: 0}
        return super().begin(i, seed, options)

    def advance(self, actions: list[Any]) -> None:
        going = ~self.pending
        super().advance(actions)
        self.rewards -= going * [abs(int(a) - self.last[i]) for i, a in enumerate(actions)]
        self.last = dict(enumerate(map(int, actions)))


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
    def final(self, i: int, obs: Any, info: dict[str, Any]) -> Any:
        return obs * 1e6, info


@mutant("final_obs_dtype", modes=("SameStep",))
class FinalObsInDoublePrecision(RowsEnv):
    def final(self, i: int, obs: Any, info: dict[str, Any]) -> Any:
        return obs.astype(np.float64), info


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


@mutant("final_obs_mask_equals_done", may_fail=("final_info_is_step_info",), modes=("SameStep",))
class FinalInfoMaskOfTerminations(RowsEnv):
    def add_finals(self) -> None:
        super().add_finals()
        self.infos["_final_info"] = self.flags[0].copy()


class _FinalObsIsFirst(RowsEnv):
    def final(self, i: int, obs: Any, info: dict[str, Any]) -> Any:
        return self.obs[i], info


@mutant("final_obs_is_last", modes=("SameStep",))
class FinalObsOverwritten(_FinalObsIsFirst):
    pass


@mutant("final_obs_is_last", modes=("SameStep",), referenced=True)
class FinalObsOverwrittenWithReference(_FinalObsIsFirst):
    pass


class _Falls(RowEnv):
    """At its limit it may have fallen: its place says so."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated or (truncated and int(self.x) % 2 == 0), truncated, info


@mutant("final_obs_is_last", modes=("SameStep",), lengths=(8,), endings=("truncated",))
class FinalObsOfTerminationsOverwritten(_FinalObsIsFirst):
    row = _Falls

    def final(self, i: int, obs: Any, info: dict[str, Any]) -> Any:
        return super().final(i, obs, info) if self.flags[0, i] else (obs, info)


@mutant("final_obs_not_aliased", modes=("SameStep",))
class FinalObsInOneBuffer(RowsEnv):
    def step(self, actions: Any) -> Any:
        obs, *rest, infos = super().step(actions)
        for final in getattr(self, "kept", ()):
            if final is not None:
                final[...] = -1
        self.kept = infos.get("final_obs", ())
        return obs, *rest, infos


@mutant("outputs_unchanged_by_later_steps", modes=("SameStep",))
class FinalInfoInOneBuffer(RowsEnv):
    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.buffer = np.zeros(self.num_envs)

    def step(self, actions: Any) -> Any:
        self.buffer[:] = -1
        return super().step(actions)

    def add_finals(self) -> None:
        super().add_finals()
        self.buffer[:] = self.infos["final_info"]["x"]
        self.infos["final_info"]["x"] = self.buffer


@mutant("final_obs_is_last", modes=("SameStep",), endings=("truncated", "terminated", "both"))
class FinalObsIsStale(RowsEnv):
    def step_row(self, i: int, action: Any) -> None:
        self.before = self.obs[i]
        super().step_row(i, action)

    def final(self, i: int, obs: Any, info: dict[str, Any]) -> Any:
        return self.before, info


@mutant("final_obs_is_last", modes=("SameStep",), referenced=True)
class FinalObsOfZeros(RowsEnv):
    def final(self, i: int, obs: Any, info: dict[str, Any]) -> Any:
        return obs * 0, info


# The last observation of a row then depends on the actions of another.
@mutant("final_obs_is_last", may_fail=("rows_independent",), modes=("SameStep",), referenced=True)
class FinalObsOfAnotherRow(RowsEnv):
    def add_finals(self) -> None:
        for i, (_, info) in list(self.finals.items()):
            self.finals[i] = self.rows[i - 1].observe(), info
        super().add_finals()


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


class _SameKeys(RowEnv):
    """Resets and steps give the same keys."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        obs, _ = super().reset(seed=seed, options=options)
        return obs, {"x": self.x, "nested": {"done": 0}}


@mutant("final_info_is_step_info", modes=("SameStep",))
class FinalInfoIsTheResets(RowsEnv):
    row = _SameKeys

    def restart(self, i: int, info: dict[str, Any]) -> dict[str, Any]:
        info = super().restart(i, info)
        self.finals[i] = self.finals[i][0], info
        return info


@mutant("final_info_is_step_info", modes=("SameStep",))
class InfosOfTheSameKeysSwapped(_InfosSwapped):
    row = _SameKeys


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


# A step that is let through and resets the row breaks both.
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
