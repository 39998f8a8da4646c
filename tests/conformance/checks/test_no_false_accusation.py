"""Environments that were accused once of what they had not done."""

from __future__ import annotations

from copy import copy, deepcopy
from functools import partial
from itertools import pairwise, product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from conformance.specimens import accused, accused_in_rows, rows_env
from conformance.specimens.broken.vec_env_long import Pictures, Speeds
from conformance.specimens.broken.vector_env_alike import AutoresetLeavesTheCounter
from conformance.specimens.broken.vector_env_long import Rooms
from conformance.specimens.points import Config, Points
from conformance.specimens.registry import specimens
from conformance.specimens.rows_env import Form, RowEnv, RowsEnv
from conformance.specimens.worlds import Kind, World
from conformance.specimens.worlds_in_rows import WorldsVecEnv
from sb3compat.conformance.checks.tools.last_infos import _growth
from sb3compat.conformance.checks.tools.leaks import (
    _zeros_beside_others,
    infos_of_autoresets,
    reset_infos_of_new_resets,
)
from sb3compat.conformance.checks.tools.standstill import no_standstill_beside_resets
from sb3compat.conformance.judge import verdict
from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.record import Op, Record
from sb3compat.conformance.recording import recorded
from sb3compat.conformance.rows import by_row
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.values import Value
from tests.conformance.kit import TRAINING, bad, judge
from tests.conformance.tiny import TinyVecEnv
from tests.envs import GYMNASIUM
from tests.profiles import some


def worlds(kind: Kind, rows: int) -> Any:
    return partial(WorldsVecEnv, partial(World, kind), rows)


IS_LAST, LIKE_OTHERS = "terminal_observation_is_last", "terminal_observation_like_others"

assert accused.ROWS
assert accused_in_rows.Rows
ACCUSED = {each.name: each for each in specimens("accused")}


@pytest.mark.parametrize("name", ACCUSED)
def test_no_check_reports_again_what_it_took_for_broken(name: str) -> None:
    specimen = ACCUSED[name]
    if specimen.family == "vec_env":
        pytest.importorskip("stable_baselines3")
    subject = examine(specimen.factory, family=specimen.family, seconds=4)
    results = judge(subject, seconds=0.3, only=specimen.wrongly)
    assert not bad(results)
    # Nor what it comes after.
    assert not any("comes after" in result.message for result in results.values())


@pytest.mark.parametrize("render", [False, None, type])
def test_a_render_that_tells_no_parameters_is_no_mistake_of_a_check(render: Any) -> None:
    def factory() -> Any:
        env = Points(Config())
        env.render = render
        return env

    only = ["reading_changes_nothing", "get_images_n_frames"]
    results = judge(examine(factory, seconds=4), seconds=0.05, only=only)
    assert results["reading_changes_nothing"].status == "passed"
    assert "itself raised" not in results["get_images_n_frames"].message


def test_a_wall_before_the_limit_is_no_stale_observation() -> None:
    """The action of CliffWalking's shortest policy leads into a wall from the fourth step on."""
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    known = "CliffWalking-v1" if "CliffWalking-v1" in gym.registry else "CliffWalking-v0"

    def factory() -> Any:
        return vec_env.DummyVecEnv([lambda: gym.make(known, max_episode_steps=8)] * 2)

    for declared in ({}, {"reference": False}):
        subject = examine(factory, declared=declared)
        results = judge(subject, seconds=0.02, only=[IS_LAST, LIKE_OTHERS, "rows_independent"])
        assert results[IS_LAST].status == ("partly_exercised" if declared else "passed")
        assert not bad(results)


@pytest.mark.parametrize("world", ["late", "still"])
def test_worlds_in_which_the_last_action_does_not_show(world: str) -> None:
    for limit in some((2, 3, 4, 5)):
        kind = Kind(world, 4, limit, "point", goal=False)
        factory = worlds(kind, 2)
        results = judge(examine(factory), seconds=0.02, only=[IS_LAST, LIKE_OTHERS])
        assert results[IS_LAST].status in ("partly_exercised", "not_exercised"), results
        assert not bad(results)


class AnswersAnything:
    """A VecEnv without a method `seed`, behind an object with an answer to any name."""

    def __init__(self) -> None:
        self.inner: Any = TinyVecEnv()
        for name in ("num_envs", "observation_space", "action_space", "reset_infos"):
            setattr(self, name, getattr(self.inner, name))
        for name in ("reset", "step", "step_async", "step_wait", "close"):
            setattr(self, name, getattr(self.inner, name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def test_an_answer_to_any_name_is_no_ability() -> None:
    subject = examine(AnswersAnything)
    assert subject.family == "vec_env"
    lacking = ("seed_method", "seeding", "sub_envs", "render")
    assert not any(subject.capabilities[name] for name in lacking)
    plain = bad(judge(examine(TinyVecEnv, declared={"seeding": False}), seconds=0.01))
    assert set(bad(judge(subject, seconds=0.01))) <= {*plain, "metadata_is_dict"}


class Simulator:
    """What a VectorEnv is made around; by `autoreset_mode` it means something else."""

    autoreset_mode = "whenever"


class AroundASimulator(RowsEnv):
    @property
    def unwrapped(self) -> Any:
        return Simulator()


def test_the_innermost_object_may_be_a_simulator() -> None:
    subject = examine(lambda: AroundASimulator(Form(mode="SameStep")))
    assert subject.mode == "SameStep"
    found = bad(judge(subject, seconds=0.01))
    assert set(found) <= ({"wrapper_deletion_keeps_env_open"} if GYMNASIUM < (1, 3) else set())


def test_sb3_does_not_get_more_observations_than_fit() -> None:
    pytest.importorskip("stable_baselines3")

    class Large(Points):
        def __init__(self) -> None:
            super().__init__(Config(rows=2))
            self.observation_space = spaces.Box(-1, 1, (3000, 1000), np.float32)

        def batch(self, observations: list[Any]) -> Any:
            return np.zeros((2, 3000, 1000), np.float32)

    subject = examine(Large, seconds=None)
    names = {*TRAINING, "works_under_vec_normalize"}
    results = judge(subject, only=names)
    for name in TRAINING:
        assert "GiB" in results[name].message, results[name]


def test_vec_normalize_leaves_spaces_that_instances_share() -> None:
    pytest.importorskip("stable_baselines3")
    kind = Kind(obs="dict", start="random", more=frozenset({"shared"}), size=4)
    factory = worlds(kind, 2)
    before = dict(factory().observation_space.spaces)
    names = ["works_under_vec_normalize", "works_under_vec_extract_dict_obs"]
    results = judge(examine(factory), seconds=0.02, only=names)
    assert factory().observation_space.spaces == before
    assert not bad(results)


@pytest.mark.parametrize("world", ["pit", "door"])
def test_a_row_that_walls_hold_is_not_late(world: str) -> None:
    """Whatever stands still in ordinary steps, too, says nothing where it does so after an end."""
    names = ["no_phantom_transition", "rows_independent"]
    for limit in some((4, 7)):
        kind = Kind(world, 4, limit, goal=False, limits_differ=True)
        factory = worlds(kind, 4)
        assert not bad(judge(examine(factory), seconds=0.02, only=names))


@pytest.mark.skipif(GYMNASIUM < (1, 1), reason="Gymnasium has no autoreset modes before 1.1")
def test_a_reset_may_come_in_the_place_of_the_autoreset() -> None:
    """Blackjack often ends with the first action, so that a reset of all rows follows an end."""

    def factory() -> Any:
        return gym.vector.SyncVectorEnv([lambda: gym.make("Blackjack-v1")] * 3)

    only = ["reset_step_ignores_action", "one_reset_per_episode"]
    for declared in ({}, {"reference": False}):
        results = judge(examine(factory, declared=declared), seconds=5, only=only)
        assert results[only[0]].status == "passed"
        assert not bad(results)


class KeepsItsMap(gym.Env[Any, Any]):
    """Draws a place when it is seeded, and begins there until it is seeded again."""

    observation_space = spaces.Box(-100, 100, (2,), np.float32)
    action_space = spaces.Discrete(2)
    place: Any = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if seed is not None or self.place is None:
            self.place = self.np_random.uniform(-1, 1, 2)
        self.time = 0
        return self.place.astype(np.float32), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        obs = (self.place + self.time).astype(np.float32)
        return obs, 1.0, False, self.time == 9, {}


@pytest.mark.parametrize("library", ["stable_baselines3.common.vec_env", "gymnasium.vector"])
def test_what_lasts_until_the_next_seed_is_no_seed_used_twice(library: str) -> None:
    module = pytest.importorskip(library)
    make = getattr(module, "DummyVecEnv", None) or module.SyncVectorEnv
    names = ["seed_used_once", "unseeded_resets_repeatable"]
    results = judge(examine(lambda: make([KeepsItsMap] * 2)), seconds=0.02, only=names)
    assert [result.status for result in results.values()] == ["passed", "not_exercised"]
    assert "without" in results[names[0]].message


class Aims(gym.Env[Any, Any]):
    """The target moves by the level of the row, the aim by the action; six waits end an episode."""

    observation_space = spaces.Box(-100, 100, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, level: float) -> None:
        self.level = level

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seen = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.waits = 0
        return self.seen.copy(), {}

    def step(self, action: Any) -> Any:
        self.waits += int(action == 1)
        self.seen += np.array([int(action) - 1, self.np_random.normal(0, self.level)], np.float32)
        return self.seen.copy(), 0.0, self.waits == 6, False, {}


def test_a_row_that_one_action_does_not_move_is_not_still() -> None:
    levels = [partial(Aims, level) for level in (0.0, 0.1, 0.3)]
    subject = examine(lambda: SyncVectorEnv(levels), seconds=1)
    assert not bad(judge(subject, seconds=0.3, only=["rows_are_alike"]))


class CountsItsArrivals(Aims):
    """In a row: who gives up begins from 0. That is observed."""

    arrivals, over = 0, False

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.arrivals, self.over = self.arrivals * (self.over and seed is None), False
        super().reset(seed=seed)
        self.seen[1] = self.arrivals / 10
        return self.seen.copy(), {}

    def step(self, action: Any) -> Any:
        self.waits += 1
        self.over = self.waits == 5
        self.arrivals += self.over
        self.seen[0] += int(action) - 1
        self.seen[1] = self.arrivals / 10
        return self.seen.copy(), 0.0, self.over, False, {}


def test_what_a_single_environment_keeps_its_row_may_keep() -> None:
    subject = examine(lambda: SyncVectorEnv([partial(CountsItsArrivals, 0.0)] * 3), seconds=1)
    results = judge(subject, seconds=0.3, only=["autoreset_like_reset"])
    assert results["autoreset_like_reset"].status == "passed", results


def test_an_info_of_seeded_resets_alone_is_not_missed_after_an_end() -> None:
    make = ACCUSED["TellsTheSeedAndTheDevice"].factory
    subject = examine(make, seconds=1)
    steps = [Op("step", (np.zeros(3, np.int64),))] * 8
    ops = [op for seed in range(3) for op in (Op("reset", kwargs={"seed": seed}), *steps)]
    record = recorded(Record(subject), make(), ops)
    assert sum(each.by == "auto" for each in by_row(record)[0]) == 6
    found = verdict(infos_of_autoresets, record)
    assert (found.broken, found.mistake) == (None, None)


class StartsElsewhere(RowEnv):
    def observe(self) -> Any:
        return super().observe() + 1


class FirstRowLeavesTheCounter(AutoresetLeavesTheCounter):
    def make_row(self, i: int) -> RowEnv:
        return RowEnv(self.form, i) if i else super().make_row(i)


def test_a_row_that_was_not_followed_over_ends_is_compared_with_its_resets() -> None:
    """Where one row is another one from its start on, the others are not followed either."""
    form = Form(kind="counted", lengths=(5,))
    reference = [*rows_env.reference(form)[:-1], lambda: StartsElsewhere(form, 2)]
    subject = examine(partial(FirstRowLeavesTheCounter, form), reference=reference)
    results = judge(subject, seconds=0.3, only=["autoreset_like_reset"])
    assert results["autoreset_like_reset"].status == "failed", results


class SeedsFromTheGlobalState(Points):
    """Seeds NumPy's global generator, and draws nothing from it later than in that reset."""

    def reset(self) -> Any:
        if self._seeds[0] is not None:
            np.random.seed(self._seeds[0] % 2**32)
            self._seeds = [int(seed) for seed in np.random.randint(2**31, size=self.num_envs)]
        return super().reset()


class CarriesMoney(Speeds):
    """The last number goes on over an end, as money does until a bankruptcy."""

    ends = 0

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        first = super().end(i, last, info)
        self.ends += 1
        if self.ends % 3:
            first[-1] = self.speed
        return first


class TellsThatTheTimeIsUp(Pictures):
    """In the last picture: by a dot in a corner, or by a dot that is home, in another row."""

    def __init__(self, home: bool) -> None:
        super().__init__()
        self.home = home

    def last(self, picture: Any) -> Any:
        picture[3, 7, 0] = 255
        if self.home:
            picture[0, :, 0] = 0
        return self.shown(picture)


@pytest.mark.parametrize(
    ("factory", "name"),
    [
        # What others draw after a reset makes no difference to generators of its own.
        (SeedsFromTheGlobalState, "same_seed_same_trajectory"),
        # What goes on over some ends is no forgotten reset.
        (CarriesMoney, "autoreset_like_reset"),
        # An end may show in the last observation.
        (partial(TellsThatTheTimeIsUp, True), LIKE_OTHERS),
        (partial(TellsThatTheTimeIsUp, False), LIKE_OTHERS),
    ],
)
def test_check_passes_what_only_looks_broken(factory: Any, name: str) -> None:
    pytest.importorskip("stable_baselines3")
    results = judge(examine(factory, seconds=2), seconds=0.3, only=[name])
    assert results[name].status == "passed", results[name]


class Levels(Rooms):
    """The number is a level, which goes up with each end, and back with a reset of all rows."""

    def enter(self, i: int) -> None:
        pass

    def after_an_end(self, i: int) -> int:
        return self.rooms[i]

    def step_row(self, i: int, action: Any) -> None:
        super().step_row(i, action)
        self.rooms[i] += bool(self.flags[:, i].any())


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("kind", [Rooms, Levels])
def test_what_goes_on_over_episodes_is_not_left_over(kind: Any, mode: str) -> None:
    subject = examine(lambda: kind(Form(mode=mode, steady=True)))
    result = judge(subject, seconds=0.5, only=["infos_of_the_autoreset"])["infos_of_the_autoreset"]
    assert result.status == "passed"


@pytest.mark.parametrize(
    ("values", "by"),
    [
        ([np.uint8(99 - step) for step in range(99)], -1.0),
        ([None, *range(98)], None),
        ([*range(98), "over"], None),
        ([float(step) for step in range(99)], 1.0),
    ],
)
def test_a_count_of_any_type_grows_or_is_none(values: list[Any], by: float | None) -> None:
    moves = [({"n": a}, {"n": b}, 7.0) for a, b in pairwise(values)]
    assert [grown(7.0) for grown in _growth("n", moves)] == ([] if by is None else [by])


def test_a_clock_that_shows_one_time_twice_is_none() -> None:
    """The time in a monitor's entry may be the same in two runs, and be another one in a third."""
    told = {"r": 1.0, "l": 2, "t": 0.1}
    assert PRELUDE["stable"]({"x": 1, "episode": told}, {"x": 1, "episode": dict(told)}) == {"x": 1}


def test_what_is_taken_out_of_copies_is_taken_out_once() -> None:
    options = PRELUDE["noting_options"]()
    for each in (copy(options), deepcopy(options), deepcopy([options] * 2)[0]):
        each.pop("x", None)
    assert (options.names, options.again) == (["x"] * 3, [])
    for each in deepcopy([options] * 2):
        each.pop("x", None)
    assert options.again == ["x"]


class HoldsUnderAction0(RowEnv):
    def step(self, action: Any) -> Any:
        _, *rest = super().step(action)
        self.x -= 0.3
        return self.observe(), *rest


def test_actions_that_are_taken_again_and_again_are_no_evidence() -> None:
    rows = type("Rows", (RowsEnv,), {"row": HoldsUnderAction0})
    make = partial(rows, Form("SameStep", lengths=(4, 30), steady=True, sub_envs=False), 2)
    subject = examine(make)

    def standing(ways: list[list[int]]) -> Any:
        ops = []
        for seed, actions in enumerate(ways):
            # The fourth step resets row 0.
            steps = [Op("step", (np.array([1, k]),)) for k in (*actions, 0, 1, 1)]
            ops += [Op("reset", kwargs={"seed": seed}), *steps]
        record = recorded(Record(subject), make(), ops)
        return verdict(no_standstill_beside_resets, record).broken

    assert standing([[1, 1, 1]] * 8) is None
    assert standing(list(map(list, product((1, 2), repeat=3)))) is not None


def test_reset_infos_that_never_change_are_not_old() -> None:
    subject = examine(lambda: TinyVecEnv(2), seconds=1)
    # Nothing is known of resets without a seed.
    ops = [Op("seed", (0,)), Op("reset"), *[Op("step", (np.zeros(2, np.int64),))] * 200]
    record = recorded(Record(subject), TinyVecEnv(2), [*ops, *ops[:2]])
    assert sum(episode.over for episode in by_row(record)[0]) > 20
    assert verdict(reset_infos_of_new_resets, record).broken is None


def test_zeros_are_no_others_entries_where_rows_may_have_them_at_once() -> None:
    dice = np.random.default_rng(0)
    found = dice.integers(0, 2, (400, 3))
    late = found.any(axis=1)
    phases = [np.roll([1, 0, 0], k // 20) for k in range(400)]  # few, if each is seen once
    for rows, told in ((found, late | (dice.random(400) < 0.2)), (phases, np.arange(400) % 40 > 9)):
        assert not list(_zeros_beside_others(_infos_with_gems(rows, told)))
    assert not list(_zeros_beside_others(_infos_with_gems(found[late], late[late])))


@pytest.mark.parametrize("kind", [bool, int, float, np.bool_, np.float32])
def test_zeros_of_each_kind_are_others_entries_where_rows_never_have_them_at_once(
    kind: type,
) -> None:
    rows = [[kind(gem) for gem in row] for row in np.eye(3)[np.arange(120) % 3]]
    assert len(list(_zeros_beside_others(_infos_with_gems(rows, np.arange(120) % 2 == 1)))) == 1


def _infos_with_gems(rows: Any, told: Any) -> list[list[Value]]:
    infos = [
        [{"gems": gems} if yes else {} for gems in row] for row, yes in zip(rows, told, strict=True)
    ]
    return [[Value(k, "infos", info, info) for info in row] for k, row in enumerate(infos)]


def test_a_channel_of_negative_zeros_is_one_of_zeros() -> None:
    kept = PRELUDE["kept"]
    starts = [np.zeros((2, 8, 8), np.float32) for _ in range(4)]
    assert kept(starts, [-start for start in starts])
    assert not kept(
        starts, [start + np.eye(8, dtype=np.float32)[k] for k, start in enumerate(starts)]
    )
