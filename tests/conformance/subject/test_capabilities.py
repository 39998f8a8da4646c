"""Capabilities that are found by trying, and declarations that win over them."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from conformance.specimens.points import Points
from conformance.specimens.rows_env import Form, RowsEnv
from conformance.specimens.worlds import Kind, World
from conformance.specimens.worlds_in_rows import WorldsVecEnv
from sb3compat import to_sb3
from sb3compat.conformance import check_vector_env
from sb3compat.conformance.subject.examine import examine
from tests.conformance.runs import here
from tests.conformance.tiny import TinyVecEnv


class NoSeeds(TinyVecEnv):
    def seed(self, seed: int | None = None) -> Any:
        raise NotImplementedError


def capabilities(factory: Any, **given: Any) -> dict[str, bool]:
    return dict(examine(factory, seconds=None, **given).capabilities)


def test_a_seed_method_that_raises_is_there_and_takes_no_seeds() -> None:
    found = capabilities(NoSeeds)
    assert (found["seed_method"], found["seeding"]) == (True, False)
    assert capabilities(TinyVecEnv)["seeding"]


class AnswersNone(Points):
    """Says that it cannot be seeded."""

    seeded = False

    def seed(self, seed: int | None = None) -> Any:
        super().seed(seed if self.seeded else None)
        return [None] * self.num_envs


@pytest.mark.parametrize("seeded", [True, False])
def test_who_answers_none_takes_no_seeds_unless_they_show(seeded: bool) -> None:
    factory = type("Some", (AnswersNone,), {"seeded": seeded})
    assert capabilities(factory)["seeding"] is seeded


def test_a_declaration_wins() -> None:
    found = capabilities(TinyVecEnv, declared={"seeding": False, "render": True})
    assert (found["seeding"], found["seed_method"], found["render"]) == (False, False, True)


def test_options_and_a_reference_are_capabilities() -> None:
    found = capabilities(TinyVecEnv, options={"x": 1}, reference=[TinyVecEnv])
    assert (found["options"], found["reference"]) == (True, True)
    assert not capabilities(TinyVecEnv)["options"]


def test_options_show_without_the_users_where_each_row_is_an_environment() -> None:
    assert capabilities(partial(SyncVectorEnv, [lambda: gym.make("CartPole-v1")] * 2))["options"]
    pytest.importorskip("stable_baselines3")
    # Its `get_attr` returns the environment of all rows for each row.
    native = partial(gym.make_vec, "CartPole-v1", 2, vectorization_mode="vector_entry_point")
    assert not capabilities(lambda: to_sb3(native()))["options"]


class SumOfSeeds(RowsEnv):
    """One seed for all rows: the sum of the list."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return super().reset(seed=sum(seed) if isinstance(seed, list) else seed, options=options)


def test_each_seed_must_concern_its_row_only() -> None:
    assert not capabilities(lambda: SumOfSeeds(Form()))["row_seeds"]


class OneSeed(RowsEnv):
    """Takes no list of seeds, and ends all rows at once under even ones."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if isinstance(seed, list):
            raise TypeError("one seed")
        self.at_once = seed is not None and seed % 2 == 0
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> Any:
        obs, rewards, terminations, *rest = super().step(actions)
        return obs, rewards, terminations | self.at_once, *rest


def test_rows_may_have_generators_of_their_own_where_a_list_of_seeds_is_refused() -> None:
    found = capabilities(lambda: OneSeed(Form()))
    assert (found["row_seeds"], found["own_generators"]) == (False, True)
    assert not capabilities(lambda: RowsEnv(Form(one_generator=True)))["own_generators"]


def test_masked_resets_are_found_where_episodes_often_end_at_once() -> None:
    assert capabilities(lambda: OneSeed(Form()))["masked_reset"]
    assert not capabilities(lambda: OneSeed(Form(masks=False)))["masked_reset"]


def test_rows_under_running_statistics_are_not_separate() -> None:
    def make() -> Any:
        envs = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
        return gym.wrappers.vector.NormalizeObservation(envs)

    found = capabilities(make)
    assert (found["separate_rows"], found["repeatable"]) == (False, False)


class Scales(gym.vector.VectorWrapper):
    """A normalizer of one's own, or something else with such names."""

    def __init__(self, kept: Any, **flags: bool) -> None:
        super().__init__(RowsEnv(Form()))
        self.kept = kept
        self.__dict__.update(flags)


def test_running_statistics_are_known_by_what_they_hold() -> None:
    statistics = SimpleNamespace(mean=np.zeros(2), var=1.0, count=1e-4)
    methods = SimpleNamespace(mean=lambda: 0, var=lambda: 1, count=lambda: 2)
    noise = SimpleNamespace(mean=0.0, std=0.1, n=3, account=1.0)
    own = SimpleNamespace(obs_mean=np.zeros(2), obs_m2=np.ones(2), obs_count=1)
    known = ((statistics, True), (own, True), (methods, False), (noise, False), (np.ones(2), False))
    for kept, lasts in known:
        found = capabilities(partial(Scales, kept))
        assert {found["separate_rows"], found["repeatable"]} == {not lasts}


@pytest.mark.parametrize("flag", ["training", "_update_running_mean", "learning", "frozen"])
def test_running_statistics_that_are_frozen_change_nothing(flag: str) -> None:
    statistics = SimpleNamespace(mean=np.zeros(2), var=1.0, count=1e-4)
    for value in (False, True):
        found = capabilities(partial(Scales, statistics, **{flag: value}))
        assert found["repeatable"] == (value == (flag == "frozen"))


def test_without_any_chance_rows_are_alike_if_they_do_the_same() -> None:
    def alike(**kind: Any) -> bool:
        make = partial(World, Kind(goal=False, obs="point", **kind))
        return capabilities(partial(WorldsVecEnv, make, 3))["alike_rows"]

    assert alike()
    assert alike(slip=0.5)  # each row has a generator of its own
    assert not capabilities(TinyVecEnv)["alike_rows"]


@pytest.mark.parametrize("value", [None, 3, [None], "ab", Exception, {}])
@pytest.mark.parametrize("rows", [1, 2])
def test_methods_that_return_anything_are_no_ability(value: Any, rows: int) -> None:
    class Stubs(TinyVecEnv):
        def __init__(self) -> None:
            super().__init__(rows)

        def get_attr(self, *args: Any, **kwargs: Any) -> Any:
            return value

        set_attr = env_method = env_is_wrapped = has_attr = get_attr
        get_images = render = set_options = get_attr

    found = capabilities(Stubs)
    assert not any(found[name] for name in ("row_seeds", "alike_rows", "options"))


class Shifts(RowsEnv):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.shift = (options or {}).get("shift", 0)
        return super().reset(seed=seed)


class Levels(TinyVecEnv):
    def set_options(self, options: Any = None) -> None:
        self.options = deepcopy(options or {})

    def reset(self) -> Any:
        options = getattr(self, "options", {})
        self.level = options["level"] if "level" in options else options.get("start", 0)
        return super().reset()


class NeedsALevel(Levels):
    def reset(self) -> Any:
        if getattr(self, "options", None):
            self.level = self.options["level"]
        return TinyVecEnv.reset(self)


def test_a_reset_may_need_the_options_that_it_looks_for() -> None:
    assert examine(NeedsALevel, seconds=None).asked == ("level",)
    report = here(NeedsALevel, only=("options_per_row", "options_used_once", "options_copied"))
    assert {result.status for result in report.results} == {"not_exercised"}, report.results


def test_options_that_a_reset_looks_for_are_known_by_name() -> None:
    assert examine(lambda: Shifts(Form(sub_envs=False)), seconds=None).asked == ("shift",)
    assert examine(Levels, seconds=None).asked == ("level", "start")
    assert examine(TinyVecEnv, seconds=None).asked == ()
    report = here(Levels, only=("options_reach_env", "num_envs_positive"))
    (note,) = (note for note in report.notes if "options" in note)
    assert """--reset-options '{"level": ..., "start": ...}', in Python options={""" in note


class Doors(RowsEnv):
    """It begins at one of two doors, or at the one that an option names."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        options = options or {}
        given = {name: options[name] for name in ("door", "reset_mask") if name in options}
        return super().reset(seed=seed, options=given)

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        info = super().begin(i, seed, {})
        row = self.rows[i]
        door = row.np_random.integers(2) if "door" not in options else options["door"] - 1
        row.x = row.start = float(door)
        self.obs[i] = row.observe()
        return info


class NoDoors(Doors):
    """Its option is refused, or makes no difference."""

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        if options.get("door", 1) > 1:
            raise ValueError("there are two")
        return super().begin(i, seed, {})


class KeepsItsDoor(Doors):
    """Its option holds until another one is given."""

    door: dict[str, Any] = {}

    def begin(self, i: int, seed: Any, options: dict[str, Any]) -> dict[str, Any]:
        self.door = options or self.door
        return super().begin(i, seed, self.door)


class NoDoorForSome(Doors):
    """Under a mask, its option has to have an entry for each row."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        if options and "reset_mask" in options and "door" in options:
            len(options["door"])
        return super().reset(seed=seed, options=options)


@pytest.mark.parametrize("make", [KeepsItsDoor, NoDoorForSome])
def test_an_option_that_lasts_or_is_refused_under_a_mask_is_not_guessed(make: Any) -> None:
    form = Form(mode="Disabled", sub_envs=False)
    assert examine(lambda: make(form), seconds=None).guess is None


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_an_option_that_a_reset_understands_is_guessed(mode: str) -> None:
    form = Form(mode=mode, sub_envs=False, lengths=(2, 3, 5))
    subject = examine(lambda: Doors(form), seconds=None)
    assert subject.options == subject.guess == {"door": 1}
    # Rows may begin so anyway; a single one often does.
    for n, only in ((1, "options_*"), (3, "masked_*")):
        make = partial(Doors, form, n)
        report = check_vector_env(make, on_fail=None, isolate=False, only=[only])
        assert not {result.status for result in report.results} & {"failed", "errored"}
    (note,) = (note for note in report.notes if "options" in note)
    assert "{'door': 1} was tried" in note
    assert examine(lambda: NoDoors(form), seconds=None).guess is None
    assert examine(lambda: Doors(form), seconds=None, declared={"options": False}).options is None
    assert examine(lambda: Doors(form), seconds=None, options={"door": 2}).guess is None


def test_a_guess_needs_no_rows_that_show_no_options() -> None:
    """Where infos show a probe option, that is passed; masked resets have the guess as well."""
    subject = examine(lambda: Doors(Form()), seconds=None)
    assert subject.options is None
    assert subject.guess == {"door": 1}
    assert not subject.guessed
