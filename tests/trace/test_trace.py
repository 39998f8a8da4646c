"""The tracer: what each API sees around the ends of episodes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from conformance.specimens import every
from conformance.specimens.registry import SPECIMENS
from sb3compat._trace.record import Ending, Layout
from sb3compat._trace.steps import Stepping
from sb3compat.conformance import programs
from sb3compat.conformance.findings import plain
from tests.envs import fns
from tests.to_sb3.backends.libraries import pool
from tests.to_sb3.driving import Changed, Gives

assert every.MODULES, "they enter the mutants"
MODES = [mode.value for mode in AutoresetMode]
BY_API = {
    "Gymnasium NEXT_STEP": ("obs", 1, "obs"),
    "Gymnasium SAME_STEP": ("infos['final_obs']", 0, "obs"),
    "Gymnasium DISABLED": ("obs", 1, "obs"),
    "SB3 VecEnv": ("infos['terminal_observation']", 0, "obs"),
}


def make_sync(mode: str, num_envs: int = 3) -> Callable[[], Any]:
    def make() -> Any:
        return SyncVectorEnv(
            [lambda: gym.make("CartPole-v1")] * num_envs, autoreset_mode=AutoresetMode(mode)
        )

    return make


def make_dummy() -> Any:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    return vec_env.DummyVecEnv([lambda: gym.make("CartPole-v1")] * 3)


def singly(row: int, seed: int, episodes: int) -> list[tuple[int, Any, Any]]:
    """The length, last and next first observation of the episodes of a single environment."""
    env = gym.make("CartPole-v1")
    space = gym.spaces.Discrete(2)
    space.seed(seed + row)
    env.reset(seed=seed + row)
    found: list[tuple[int, Any, Any]] = []
    length = 0
    while len(found) < episodes:
        length += 1
        last, _, terminated, truncated, _ = env.step(space.sample())
        if terminated or truncated:
            found.append((length, last, env.reset()[0]))
            length = 0
    return found


def ends(layout: Layout) -> list[tuple[int, Any, Any]]:
    """The same, as a layout shows it."""
    final, after, first = BY_API[layout.api]
    found = []
    for ending in layout.endings:
        at = next(k for k, call in enumerate(ending.calls) if call.ended)
        last, start = ending.calls[at].value(final), ending.calls[at + after].value(first)
        assert last is not None
        assert start is not None
        assert (last.role, start.role) == ("final", "first")
        found.append((ending.length, last.value, start.value))
    return found


@pytest.mark.parametrize("make", [*map(make_sync, MODES), make_dummy])
def test_every_api_shows_the_same_episodes_as_the_single_environments(
    make: Callable[[], Any],
) -> None:
    found = sb3compat.trace(make, episodes=2, rows=[0, 2], seed=5)
    expected = [end for row in (0, 2) for end in singly(row, 5, 2)]
    shown = {layout.api for layout in found.layouts if not layout.refusal}
    assert shown >= set(BY_API) - {"Gymnasium NEXT_STEP"}
    for layout in found.layouts:
        if layout.refusal:
            assert layout.api == "Gymnasium NEXT_STEP"
            continue
        np.testing.assert_equal(ends(layout), expected)
        assert layout.marks == ()


def test_large_observations_are_not_recorded_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_MOST_BYTES", 0)
    stepping = Stepping(make_sync("SameStep")(), AutoresetMode.SAME_STEP, [0], 0, 1000)
    stepping.to_ends(1)
    seen = len(stepping.record.calls)
    stepping.beyond()
    # Resets of all rows, with a step after each.
    methods = [call.op.method for call in stepping.record.calls[seen:]]
    assert methods == ["reset", "step"] * (len(methods) // 2)


def test_what_raises_with_one_api_only_is_shown_for_that_api() -> None:
    """A lock in the infos, which only Gymnasium's batches of them can hold."""

    def make() -> Any:
        return SyncVectorEnv([lambda: Gives(fns()[0](), step={"lock": threading.Lock()})] * 2)

    found = sb3compat.trace(make, episodes=1)
    assert found.layouts[0].endings
    assert any("cannot pickle" in layout.refusal for layout in found.layouts[1:])
    with pytest.raises(ZeroDivisionError):
        sb3compat.trace(Changed(make(), step=lambda *_: 1 / 0))


def test_rows_with_different_starts_are_traced_as_they_are() -> None:
    spaces = [gym.spaces.Discrete(3, start=start) for start in (0, 5)]
    rows = [fns(1, observation_space=space, lengths=(1,))[0] for space in spaces]
    found = sb3compat.trace(SyncVectorEnv(rows, observation_mode="different"), episodes=1)
    assert found.layouts[0].endings
    assert all("from the same start" in layout.refusal for layout in found.layouts[1:])


# Mutants of the kit that are wrong at the ends of episodes, and the check that a trace names.
BROKEN = {
    "vec_env-NoTerminalObservation": "terminal_observation_iff_done",
    "vec_env-TerminalObservationAlways": "terminal_observation_iff_done",
    "vec_env-TerminalObservationIsTheNextFirst": "terminal_observation_not_reset_obs",
    "vec_env-TerminalObservationIsABatch": "terminal_observation_in_space",
    "vec_env-NoTruncatedFlag": "truncated_flag_present",
    "SameStep-NoFinalObs": "final_obs_present",
    "SameStep-FinalObsOverwritten": "final_obs_is_last",
    "SameStep-FinalObsNotTransformed": "final_obs_in_space",
    "NextStep-RewardInResetStep": "reset_step_reward_zero",
    "NextStep-FlagInResetStep": "reset_step_flags_false",
    "NextStep-FirstObsTwice": "done_step_returns_final_obs",
}


@pytest.mark.parametrize("mutant", BROKEN)
@pytest.mark.filterwarnings("ignore:The last observation of row")
def test_what_looks_wrong_is_marked_with_the_id_of_a_check_and_nothing_else(mutant: str) -> None:
    if mutant.startswith("vec_env"):
        pytest.importorskip("stable_baselines3")
    found = sb3compat.trace(SPECIMENS["mutant", mutant].factory, episodes=3, rows=1)
    assert {mark.check for mark in found.layouts[0].marks} == {BROKEN[mutant]}
    # A reset step that ends an episode is not an ending.
    assert [ending.length > 1 for ending in found.layouts[0].endings] == [True] * 3


class Stays(gym.Env[Any, Any]):
    """Has a single observation, or goes on where it was: its resets may move nothing."""

    observation_space = gym.spaces.Box(0, 1e6, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, speed: int) -> None:
        self.speed = speed
        self.place = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 5
        return np.array([self.place], np.float32), {}

    def step(self, action: Any) -> Any:
        self.place += self.speed
        self.left -= 1
        return np.array([self.place], np.float32), 1.0, False, not self.left, {}


@pytest.mark.filterwarnings("ignore:The last observation of row 0 equals the first")
@pytest.mark.parametrize("speed", [0, 1])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_environment_whose_resets_move_nothing_is_not_marked(
    mode: AutoresetMode, speed: int
) -> None:
    def make() -> Any:
        return SyncVectorEnv([lambda: Stays(speed)] * 2, autoreset_mode=mode)

    assert sb3compat.trace(make).marks == ()


class Echo(Stays):
    """Observes the action that it takes, which has to be of its space."""

    observation_space = gym.spaces.Box(-1, 3, (2,), np.float32)

    def __init__(self, space: Any) -> None:
        super().__init__(1)
        self.action_space = space

    def reset(self, **kwargs: Any) -> Any:
        return np.full(2, -1, np.float32), super().reset(**kwargs)[1]

    def step(self, action: Any) -> Any:
        assert action in self.action_space
        return flat(action), *super().step(action)[1:]


def flat(action: Any) -> Any:
    parts = action.values() if isinstance(action, dict) else action
    return np.array([np.ravel(part)[0] for part in parts], np.float32)


@pytest.mark.parametrize("num_envs", [2, 3])
@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Discrete(3))),
        gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Box(-1, 1, (2,)))),
        gym.spaces.Dict(a=gym.spaces.Discrete(3), b=gym.spaces.Box(-1, 1, (2,))),
    ],
)
def test_actions_in_parts_are_those_that_each_row_takes(space: Any, num_envs: int) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    rows = [lambda: Echo(space)] * num_envs
    shown = []
    for make in (vec_env.DummyVecEnv, SyncVectorEnv):
        found = sb3compat.trace(lambda make=make: make(rows), episodes=1)
        assert found.marks == ()
        for layout in found.layouts:
            assert not layout.refusal
            for ending in layout.endings:
                at = next(k for k, call in enumerate(ending.calls) if call.ended)
                final = ending.calls[at].value(BY_API[layout.api][0])
                took = ending.calls[at].value("action")
                assert final is not None
                assert took is not None
                np.testing.assert_array_equal(final.value, flat(took.value))
                shown.append((ending.row, flat(took.value).tolist()))
    # The same for each API.
    assert len({(row, *took) for row, took in shown}) == num_envs


def test_observations_that_are_texts_are_shown_by_row() -> None:
    class Says(Stays):
        observation_space = gym.spaces.Text(9)

        def reset(self, **kwargs: Any) -> Any:
            return "begin", super().reset(**kwargs)[1]

        def step(self, action: Any) -> Any:
            return "end" if self.left == 1 else "go", *super().step(action)[1:]

    layout = sb3compat.trace(lambda: SyncVectorEnv([lambda: Says(0)] * 2), episodes=1).layouts[0]
    shown = [[call.value("obs") for call in ending.calls] for ending in layout.endings]
    assert [[obs and obs.value for obs in each] for each in shown] == [
        ["go", "end", "begin", "go"]
    ] * 2


def test_results_without_episodes_are_refused_with_the_check_for_them() -> None:
    def column(obs: Any, rewards: Any, terminations: Any, *rest: Any) -> Any:
        return obs, rewards, terminations[:, None], *rest

    with pytest.raises(ValueError, match=r"terminations.*`sb3compat explain flags_shape`"):
        sb3compat.trace(lambda: Changed(make_sync("SameStep")(), column), max_steps=30)


def test_nothing_is_said_to_be_right_before_an_episode_has_ended() -> None:
    found = sb3compat.trace(make_sync("NextStep"), max_steps=2)
    assert not found.ended
    assert "No episode ended within 2 steps" in found.html()


def test_environments_that_the_function_made_are_closed() -> None:
    made = []

    def make() -> Any:
        made.append(make_sync("NextStep")())
        return made[-1]

    sb3compat.trace(make, episodes=1, rows=1)
    assert len(made) == 4
    with pytest.raises(ValueError, match="rows=9"):
        sb3compat.trace(make, rows=9)
    assert len(made) == 5
    assert all(env.closed for env in made)


def test_pictures_hold_the_values_and_load_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = sb3compat.trace(make_sync("NextStep"), episodes=1, rows=np.int64(1))
    ending: Ending = found.layouts[0].endings[0]
    final = next(call for call in ending.calls if call.ended).value("obs")
    assert final is not None
    value = plain(final.value)
    found.show(width=400)
    assert f"{value} (last)" in capsys.readouterr().out
    page = found.html()
    assert f"{value} (last)" in page
    assert "<script" not in page
    assert "src=" not in page.replace("default-src", "").replace("style-src", "")
    assert found.svg(width=200).startswith("<svg")
    assert "srcdoc" in found._repr_html_()


def test_hostile_text_is_escaped() -> None:
    def make() -> Any:
        hostile = Gives(gym.make("CartPole-v1"), step={"<script>": "</script><b>"})
        return SyncVectorEnv([lambda: hostile])

    assert "<script" not in sb3compat.trace(make, episodes=1).html()


def test_infos_are_those_of_the_row() -> None:
    def telling(row: int) -> Any:
        in_step = {f"of_{row}": row, "all": row}
        return Gives(gym.make("CartPole-v1"), step=in_step, reset={"started": row})

    def make() -> Any:
        return SyncVectorEnv([partial(telling, row) for row in range(2)])

    for layout in sb3compat.trace(make, episodes=1).layouts:
        for ending in layout.endings:
            info = ending.calls[0].infos
            assert info.keys() - {"TimeLimit.truncated"} == {f"of_{ending.row}", "all"}
            assert info["all"] == ending.row
            if layout.api == "SB3 VecEnv":
                ended = next(call for call in ending.calls if call.ended)
                shown = [value.value for value in ended.values if value.name == "reset_infos"]
                assert shown == [{"started": ending.row}]
                assert ending.calls[0].value("reset_infos") is None


def test_environment_whose_spec_is_of_another_kind_is_named_by_its_class() -> None:
    """EnvPool's specs have no `id`."""
    assert "CartPole" in str(sb3compat.trace(pool(2, limit=4)))
