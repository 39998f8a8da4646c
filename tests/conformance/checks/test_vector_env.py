from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from conformance.specimens.registry import SPECIMENS
from conformance.specimens.rows_env import MODES, Form, RowEnv, RowsEnv, reference
from sb3compat.conformance.checks.catalogue import checks_of, find_checks
from sb3compat.conformance.run.report import Result
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.run.settings import Settings
from sb3compat.conformance.subject.examine import examine
from tests.conformance.checks.test_mutants import CLOSES
from tests.conformance.kit import bad, judge
from tests.envs import ENDINGS, GYMNASIUM, MakeEnv, script
from tests.profiles import some

# What Gymnasium's own vector environments do not keep.
POPS_THE_MASK = "options_not_mutated"
SHARED = {"metadata_not_shared"} if GYMNASIUM < (1, 4) else set()
# Gymnasium 1.1 pairs actions and environments with a zip that cuts off what is too much.
COUNTS = {"wrong_action_count_rejected"} if GYMNASIUM < (1, 2) else set()


def look(
    factory: Callable[[], Any],
    seed: int = 0,
    seconds: float = 0.0,
    *,
    thorough: Collection[str] = (),
    only: Collection[str] | None = None,
    **given: Any,
) -> dict[str, Result]:
    """The results of a new environment, in which even a slow machine finds an end of an episode."""
    subject = examine(factory, seconds=60, **given)
    return judge(
        subject, seconds=seconds, seed=seed, thorough=thorough, thorough_seconds=0.4, only=only
    )


def outcome(results: dict[str, Result], *statuses: str) -> set[str]:
    return {name for name, result in results.items() if result.status in statuses}


# The checks of rows that differ by their seeds only.
ALIKE = ("rows_are_alike", "endings_together")


def test_a_correct_environment_exercises_every_check() -> None:
    for mode in some(MODES):
        given = {"reference": reference(Form(mode=mode)), "options": {"offset": 100}}
        results = look(lambda mode=mode: RowsEnv(Form(mode=mode)), seconds=0.3, **given)
        alike = Form(mode, (6,), kind="counted", steady=True)
        more = look(lambda alike=alike: RowsEnv(alike), seconds=0.3, only=ALIKE)
        assert outcome(results | more, "passed") | CLOSES == set(results), mode


def single(name: str, **kwargs: Any) -> Callable[[], Any]:
    return lambda: gym.make(name, **kwargs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "scripted"])
def test_sync(name: str, mode: str) -> None:
    fns: list[Any] = [single(name)] * 2
    if name == "scripted":
        fns = [MakeEnv(script(lengths=(3, 5, 2), endings=ENDINGS), i) for i in range(3)]
    for given in ({}, {"reference": fns}):
        results = look(
            lambda: SyncVectorEnv(fns, autoreset_mode=mode),
            thorough={"info_values_keep_type"},
            **given,
        )
        expected = {POPS_THE_MASK} | SHARED | CLOSES | COUNTS
        if name == "FrozenLake-v1" and mode != "Disabled":
            # `prob` is the int 1 in resets: batched with a step's 1/3, that becomes 0.
            expected |= {"info_values_keep_type"}
        assert set(bad(results)) == expected, bad(results)


@pytest.mark.parametrize("mode", MODES)
def test_sync_with_environments_that_reuse_their_array(mode: str) -> None:
    fns = [MakeEnv(script(lengths=(3, 5, 2), reuse=True), i) for i in range(3)]
    results = look(lambda: SyncVectorEnv(fns, autoreset_mode=mode), seconds=0.1)
    # Lists within infos are those of the environment.
    expected = {POPS_THE_MASK, "outputs_unchanged_by_later_steps"} | SHARED | CLOSES | COUNTS
    if mode == "SameStep":
        # The info of a step is the dict that the reset then fills.
        expected |= {"final_obs_not_aliased", "final_info_is_step_info"}
    assert set(bad(results)) == expected, bad(results)


@pytest.mark.parametrize("mode", MODES)
def test_async(mode: str) -> None:
    fns = [single("CartPole-v1")] * 2
    only = [
        "autoreset_mode_matches_behaviour",
        "same_seed_same_trajectory",
        "reset_clears_pending_autoreset",
        "masked_reset_restarts_masked",
        *[check.id for check in checks_of("vector_env") if check.modes == (mode,)],
    ]
    results = look(lambda: AsyncVectorEnv(fns, autoreset_mode=mode), only=only)
    # Its workers note in NEXT_STEP mode only that a row has ended.
    expected = {"stepping_ended_row_rejected"} if mode == "Disabled" else set()
    assert set(bad(results)) == expected, bad(results)


def test_async_without_shared_memory() -> None:
    fns = [single("CartPole-v1")] * 2
    only = ["reset_clears_pending_autoreset", "no_stale_result_after_error"]
    masked = "masked_reset_restarts_masked"  # shows the same now and then, and is not to
    results = look(lambda: AsyncVectorEnv(fns, shared_memory=False), only=[*only, masked])
    assert results[masked].status == "skipped"
    # With a wrong number of actions it raises after it has sent them to the workers.
    assert set(bad(results)) == set(only[:1] if COUNTS else only), bad(results)


class Outside(gym.ObservationWrapper[Any, Any, Any]):
    def observation(self, observation: Any) -> Any:
        return observation + 1000


def test_observations_out_of_bounds_fail_one_check_only() -> None:
    fns = [lambda: Outside(single("CartPole-v1")())] * 2
    results = look(
        lambda: SyncVectorEnv(fns, autoreset_mode="SameStep"),
        only=["obs_in_batched_space", "final_obs_in_space"],
    )
    assert results["obs_in_batched_space"].status == "failed"
    assert results["final_obs_in_space"].status == "skipped"


@pytest.mark.parametrize("rows", [1, 3])
def test_native_cartpole(rows: int) -> None:
    results = look(
        lambda: gym.make_vec("CartPole-v1", num_envs=rows, render_mode="rgb_array"), seconds=0.1
    )
    assert set(bad(results)) <= CLOSES, bad(results)


@pytest.mark.parametrize(
    ("name", "mode"),
    [("NormalizeObservation", "NextStep"), *(("NormalizeReward", mode) for mode in MODES)],
)
def test_running_statistics(name: str, mode: str) -> None:
    wrapper = getattr(gym.wrappers.vector, name)
    results = look(lambda: wrapper(SyncVectorEnv([single("CartPole-v1")] * 2, autoreset_mode=mode)))
    known = {POPS_THE_MASK} | SHARED | CLOSES | COUNTS
    if name == "NormalizeObservation" and GYMNASIUM < (1, 3):
        known |= {
            "obs_in_batched_space"
        }  # it kept the space, with the bounds, of what it normalises
    assert set(bad(results)) <= known, bad(results)
    assert results["rows_independent"].status == "skipped"


@pytest.mark.jax
def test_functional_jax_env() -> None:
    pytest.importorskip("jax")
    only = ["reset_step_reward_zero", "rows_independent", "reset_step_flags_false"]
    results = look(lambda: gym.make_vec("phys2d/CartPole-v1", num_envs=2), only=only)
    # When one row is reset, the others stand still.
    assert set(bad(results)) == {"reset_step_reward_zero", "rows_independent"}


def test_a_reproduction_is_a_script_of_its_own() -> None:
    subject = examine(SPECIMENS["mutant", "NextStep-ResetsTwice"].factory)
    (check,) = find_checks("one_reset_per_episode")
    make_env = (
        "from conformance.specimens import every\n"
        "from conformance.specimens.registry import SPECIMENS\n"
        "make_env = SPECIMENS['mutant', 'NextStep-ResetsTwice'].factory"
    )
    result = run_check(check, subject, Settings(seconds=0.2, make_env=make_env))
    done = subprocess.run(
        [sys.executable, "-c", result.reproduction], capture_output=True, text=True, check=False
    )
    assert "AssertionError: obs[" in done.stderr


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_rows_that_stay_where_they_begin_seem_to_heed_no_mask(mode: str) -> None:
    """As in CliffWalking: each episode begins in one place, and a step may lead nowhere."""

    class Walk(RowEnv):
        def reset(self, **kwargs: Any) -> Any:
            super().reset(**kwargs)
            self.x = 0.0
            return self.observe(), {}

        def step(self, action: Any) -> Any:
            x = self.x
            _, reward, *flags, info = super().step(action)
            self.x = x + (action == 2)
            return self.observe(), reward, *flags, info

    class Walks(RowsEnv):
        def make_row(self, i: int) -> RowEnv:
            return Walk(self.form, i)

    shape = Form(mode=mode, kind="discrete", masks=False, lengths=(100,))
    assert not examine(lambda: Walks(shape)).capabilities["masked_reset"]
    shape = replace(shape, masks=True)
    assert examine(lambda: Walks(shape)).capabilities["masked_reset"]
