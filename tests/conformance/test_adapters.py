"""Mistakes that adapters of real projects have, and that once went unnoticed here."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from sb3compat.conformance.run.report import Result
from tests.conformance.kit import TRAINING
from tests.envs import GYMNASIUM
from tests.profiles import nightly, some

vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

# What its own vector environments do.
OF_GYMNASIUM = {
    "options_not_mutated", "metadata_not_shared", "wrapper_deletion_keeps_env_open",
    *(["wrong_action_count_rejected"] if GYMNASIUM < (1, 2) else []),
}  # fmt: skip


class Stroll(gym.Env[Any, Any]):
    """Goes about, and some way by chance, until it is too far out, or for twelve steps."""

    observation_space: Any = spaces.Box(-1000, 1000, (2,), np.float32)
    action_space: Any = spaces.Discrete(3)
    width, tells = 4.0, True

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-1, 1, 2), 0
        return self.observe(), {"start": self.place.tolist()} if self.tells else {}

    def step(self, action: Any) -> Any:
        push = np.array([0.5 * (int(action) - 1), 0.1])
        self.place = self.place + push + self.np_random.normal(0, 0.1, 2)
        self.time += 1
        out, late = bool(abs(self.place[0]) > self.width), self.time >= 12
        info = {"time": self.time} if self.tells else {}
        return self.observe(), float(self.place[1]), out, late, info

    def observe(self) -> Any:
        return self.place.astype(np.float32)


class Wide(Stroll):
    """Never too far out: all rows end at once."""

    width = 1e9


class Narrow(Stroll):
    """Soon too far out, unless what it does changes all the time."""

    width = 2.0


class Silent(Stroll):
    """Says nothing, and ends in one way only."""

    width, tells = 0.5, False


class Rows(vec_env.DummyVecEnv):  # type: ignore[misc, name-defined]
    """Right, but for what its subclasses do."""

    single: type[Stroll] = Stroll

    def __init__(self, rows: int = 3) -> None:
        super().__init__([self.single] * rows)


class BackToFront(Rows):
    single = Narrow

    def step_async(self, actions: Any) -> None:
        super().step_async(actions[::-1])


class NeverTruncates(Rows):
    single = Narrow

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        for info in infos:
            info["TimeLimit.truncated"] = False
        return obs, rewards, dones, infos


class FlagStays(Rows):
    """For one step more."""

    single = Narrow
    before: Any = (False,) * 3

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        flags = [info["TimeLimit.truncated"] for info in infos]
        for info, flag in zip(infos, self.before, strict=True):
            info["TimeLimit.truncated"] |= flag
        self.before = flags
        return obs, rewards, dones, infos


class LastOfOneForAll(Rows):
    """Of the first row of those that end at once."""

    single = Wide

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        rows = np.flatnonzero(dones)
        for i in rows:
            infos[i]["terminal_observation"] = infos[rows[0]]["terminal_observation"].copy()
        return obs, rewards, dones, infos


class LastOfTheEpisodeBefore(Rows):
    def reset(self) -> Any:
        self.before: dict[int, Any] = {}
        return super().reset()

    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        for i in map(int, np.flatnonzero(dones)):
            last = infos[i]["terminal_observation"]
            infos[i]["terminal_observation"] = self.before.get(i, last)
            self.before[i] = last
        return obs, rewards, dones, infos


class CallsAll(Rows):
    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        results = super().env_method(name, *args, **kwargs)
        return [results[i] for i in self._get_indices(indices)]


class OneDictForARow(Rows):
    """Which says the same in each step, save in the last one."""

    single = Silent

    def __init__(self, rows: int = 3) -> None:
        super().__init__(rows)
        self.given: list[dict[str, Any]] = [{} for _ in self.envs]

    def step_wait(self) -> Any:
        *results, infos = super().step_wait()
        for given, info in zip(self.given, infos, strict=True):
            given.clear()
            given.update(info)
        return *results, list(self.given)


class ResetGoesOn(Rows):
    """Without a seed."""

    last: Any = None

    def reset(self) -> Any:
        if self.last is None or self._seeds[0] is not None:
            self.last = super().reset()
        return self.last.copy()

    def step_wait(self) -> Any:
        results = super().step_wait()
        self.last = results[0]
        return results


class RowsBehindStandStill(Rows):
    """While one before them ends."""

    single = Wide

    def step_wait(self) -> Any:
        rows = []
        for i, env in enumerate(self.envs):
            obs, reward, terminated, truncated, info = env.step(self.actions[i])
            info["TimeLimit.truncated"] = truncated and not terminated
            if over := terminated or truncated:
                info["terminal_observation"] = obs
                obs, self.reset_infos[i] = env.reset()
            rows.append((obs, reward, over, info))
            if over:
                break
        for env in self.envs[len(rows) :]:
            rows += [(env.observe(), 0.0, False, {"TimeLimit.truncated": False})]
        obs, rewards, dones, infos = zip(*rows, strict=True)
        return np.stack(obs), np.array(rewards, np.float32), np.array(dones), list(infos)


class NoAxisForOne(Rows):
    def reset(self) -> Any:
        return super().reset()[0]


class NumberForOne(Rows):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards.squeeze(), dones, infos


class FlagForOne(Rows):
    def step_wait(self) -> Any:
        obs, rewards, dones, infos = super().step_wait()
        return obs, rewards, dones[0], infos


def failures(factory: Any, **options: Any) -> dict[str, Result]:
    known = [c.id for c in checks_of() if c.id not in TRAINING | OF_GYMNASIUM]
    options = {"only": tuple(known), "isolate": False} | options
    results = run(factory, options=Options(**options)).results
    return {r.check_id: r for r in results if r.status in ("failed", "errored")}


# So many programs for each check.
BRIEFLY = 6 if nightly() else 2


def found_of(names: set[str], factory: Any, **options: Any) -> dict[str, Result]:
    """The failures of all checks, where those that are named get the programs that they need."""
    found = failures(factory, programs=BRIEFLY, **options)
    return found | (failures(factory, only=tuple(names), **options) if names else {})


ALONE = [
    (FlagStays, "truncated_flag_exclusive"),
    (LastOfOneForAll, "rows_independent"),
    (CallsAll, "env_method_args"),
    (OneDictForARow, "infos_unchanged_by_later_steps"),
    (RowsBehindStandStill, "rows_independent"),
]
BESIDE = [
    (BackToFront, "rows_match_reference"),
    (NeverTruncates, "truncated_flag_exclusive"),
    (LastOfTheEpisodeBefore, "terminal_observation_is_last"),
    (ResetGoesOn, "reset_starts_fresh_episodes"),
]


def test_correct_adapters_pass() -> None:
    for single in (Stroll, Wide, Narrow, Silent):
        factory = type(single.__name__, (Rows,), {"single": single})
        assert not failures(factory, programs=BRIEFLY)
        assert not failures(factory, programs=BRIEFLY, reference=[single] * 3)


@pytest.mark.parametrize(("factory", "name"), some(ALONE, 2))
def test_defects_are_found_without_a_reference(factory: Any, name: str) -> None:
    found = found_of({name}, factory)
    assert found.keys() == {name}, {k: r.message for k, r in found.items()}


@pytest.mark.parametrize(("factory", "name"), some(BESIDE, 2))
def test_defects_are_found_with_a_reference(factory: Any, name: str) -> None:
    found = found_of({name}, factory, reference=[factory.single] * 3)
    assert found.keys() == {name}, {k: r.message for k, r in found.items()}


@pytest.mark.parametrize("beside", some([True, False]))
@pytest.mark.parametrize(
    ("factory", "name", "message"),
    [
        (NoAxisForOne, "reset_obs_in_space", "obs.shape=(2,), but should be (1, 2): 1 rows, each"),
        (NumberForOne, "rewards_shape", "but should be an array of numbers of shape (1,) [step 1]"),
        (FlagForOne, "dones_shape", "but should be of shape (1,), each true or false [step 1]"),
    ],
)
def test_one_mistake_is_one_failure(factory: Any, name: str, message: str, beside: bool) -> None:
    found = found_of({name}, lambda: factory(1), reference=[Stroll] if beside else None)
    assert found.keys() == {name}, {k: r.message for k, r in found.items()}
    assert message in found[name].message


def test_a_message_counts_the_steps_of_its_own_environment() -> None:
    (result,) = failures(RowsBehindStandStill, only=("rows_independent",)).values()
    assert result.finding is not None
    steps = 0

    def counted() -> Any:
        env = RowsBehindStandStill()
        step_wait = env.step_wait

        def step() -> Any:
            nonlocal steps
            steps += 1
            return step_wait()

        env.step_wait = step
        return env

    # One program with one environment, and no steps of those that passed before.
    text = result.reproduction.replace(" as make_env", "")
    with pytest.raises(AssertionError, match=rf"\[step {result.finding.step}, row"):
        exec(text, {"make_env": counted})
    assert result.finding.step == steps


class Vector(SyncVectorEnv):
    """Right, but for what its subclasses do to what a step returns."""

    def __init__(self, mode: str, rows: int = 3) -> None:
        super().__init__([Stroll] * rows, autoreset_mode=AutoresetMode(mode))
        self.before: dict[int, Any] = {}

    def reset(self, **given: Any) -> Any:
        mask = (given.get("options") or {}).get("reset_mask")
        if mask is None:
            self.before.clear()
        return super().reset(**given)

    def step(self, actions: Any) -> Any:
        results = super().step(actions)
        for i in np.flatnonzero(results[2] | results[3]):
            self.at_end(int(i), *results)
        return results

    def at_end(self, i: int, obs: Any, rewards: Any, ended: Any, cut: Any, infos: Any) -> None:
        pass


class FinalObsOfAnotherRow(Vector):
    def at_end(self, i: int, obs: Any, rewards: Any, ended: Any, cut: Any, infos: Any) -> None:
        infos["final_obs"][i] = self.envs[i - 1].unwrapped.observe()  # type: ignore[attr-defined]


class LastOfTheFirstEpisode(Vector):
    def at_end(self, i: int, obs: Any, rewards: Any, ended: Any, cut: Any, infos: Any) -> None:
        batch = infos.get("final_obs", obs)
        batch[i] = self.before.setdefault(i, deepcopy(batch[i]))


class TruncatesOnce(Vector):
    def at_end(self, i: int, obs: Any, rewards: Any, ended: Any, cut: Any, infos: Any) -> None:
        if self.before.setdefault(i, rewards[i]) != rewards[i]:
            ended[i], cut[i] = True, False


@pytest.mark.parametrize(
    ("kind", "modes", "names", "beside"),
    [
        (Vector, "NSD", set(), True),
        (FinalObsOfAnotherRow, "S", {"rows_independent"}, False),
        (LastOfTheFirstEpisode, "N", {"done_step_returns_final_obs"}, True),
        (LastOfTheFirstEpisode, "S", {"final_obs_is_last"}, True),
        (LastOfTheFirstEpisode, "D", {"no_reset_unasked"}, True),
        (TruncatesOnce, "NSD", {"rows_match_reference"}, True),
    ],
)
def test_vector_environments(kind: Any, modes: str, names: set[str], beside: bool) -> None:
    for mode in (mode for mode in ("NextStep", "SameStep", "Disabled") if mode[0] in modes):
        reference = [Stroll] * 3 if beside else None
        found = found_of(names, lambda mode=mode: kind(mode), reference=reference)
        assert found.keys() == names, {k: r.message for k, r in found.items()}
