"""Inside a placement group, as in a trial of Ray Tune: where actors go, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sb3compat
from tests.parallel.actors import known, on_ray

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'sb3compat[ray]'")
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("connected")]


# What the bundles of the tests lack; the cluster has 4 of it.
OUTSIDE = {"num_cpus": 0, "resources": {"far": 1}}


class Process:
    """What an actor inside a group finds."""

    def defaults(self, *options: dict[str, Any]) -> list[int]:
        from sb3compat._parallel.ray_cluster import default_workers, options_for

        return [default_workers(options_for(each)) for each in options]

    def made(self, workers: int | None, **options: Any) -> str | int:
        """The number of actors in the group, or the error."""
        group = ray.util.get_current_placement_group()
        try:
            env = on_ray(known(), workers, actor_options=options)  # type: ignore[arg-type]
        except sb3compat.WorkerError as error:
            return str(error)
        found = env.env_method("group")
        env.close()
        count = len(env.rows_of_worker)
        return count if set(found) == {group.id.hex()} else -count

    def filled(self) -> str:
        """The error of a second environment where the first has taken the last bundle."""
        first = on_ray(known(), 1)
        with pytest.raises(sb3compat.WorkerError) as caught:
            on_ray(known(), 1, schedule_timeout=0.5)
        first.close()
        return str(caught.value)


@pytest.fixture
def groups() -> Iterator[Any]:
    """Makes groups, and an actor in the first bundle of each, which captures its own actors."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    made = []

    def make(*bundles: dict[str, float], capture: bool = True) -> Any:
        group = ray.util.placement_group(list(bundles))
        made.append(group)
        strategy = PlacementGroupSchedulingStrategy(group, 0, capture)
        inside = ray.remote(Process).options(num_cpus=1, scheduling_strategy=strategy)
        return group, inside.remote()

    yield make
    for group in made:
        ray.util.remove_placement_group(group)


def test_default_is_what_the_group_has_room_for_unless_the_options_name_another_place(
    groups: Any,
) -> None:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as In

    group, inside = groups({"CPU": 1}, {"CPU": 1}, {"CPU": 1})
    asked: list[tuple[dict[str, Any], int]] = [
        ({}, 2),
        ({"num_cpus": 0.5}, 4),
        ({"num_cpus": 0.1}, 20),
        ({"num_cpus": 2}, 1),
        ({"num_cpus": 0}, 1),
        (OUTSIDE, 1),
        *[
            ({**OUTSIDE, "scheduling_strategy": each}, 4)
            for each in ("DEFAULT", "SPREAD", In(None))
        ],
        ({"scheduling_strategy": In(group, 2)}, 1),
        ({"scheduling_strategy": In(group, 2), "num_cpus": 0.25}, 4),
    ]
    options, expected = zip(*asked, strict=True)
    assert ray.get(inside.defaults.remote(*options)) == list(expected)
    other, elsewhere = groups({"CPU": 1}, capture=False)
    assert ray.get(elsewhere.defaults.remote({"scheduling_strategy": In(group)})) == [2]
    assert ray.get(inside.defaults.remote({"scheduling_strategy": In(other)})) == [1]


def test_a_group_that_captures_nothing_leaves_the_cluster(groups: Any) -> None:
    _, inside = groups({"CPU": 1}, {"CPU": 1}, capture=False)
    assert ray.get(inside.defaults.remote(OUTSIDE)) == [4]


def test_what_never_fits_is_an_error_at_once_that_names_both_ways_out(groups: Any) -> None:
    _, inside = groups({"CPU": 1})
    asked: list[tuple[int | None, dict[str, Any], str]] = [
        (None, {}, "1 Ray actor with CPU: 1 each to start, but none fits"),
        (3, {"num_cpus": 0.5}, "3 Ray actors with CPU: 0.5 each to start, but none fits"),
        (2, OUTSIDE, "with far: 1 each to start, but none fits"),
    ]
    for workers, options, what in asked:
        error = ray.get(inside.made.remote(workers, **options), timeout=30)
        for part in (
            what,
            "whose bundles are [CPU: 1], of which this process holds CPU: 1. A",
            "tune.PlacementGroupFactory([{'CPU': 1}] + [{",
            f"] * {workers or 1})",
            "actor_options={'scheduling_strategy': 'DEFAULT'}",
        ):
            assert part in error
    assert ray.get(inside.made.remote(1, scheduling_strategy="DEFAULT"), timeout=60) == -1


def test_group_that_others_fill_is_an_error_that_names_the_way_out(groups: Any) -> None:
    _, inside = groups({"CPU": 1}, {"CPU": 1})
    error = ray.get(inside.filled.remote(), timeout=60)
    for part in (
        "1 did not within schedule_timeout=0.5",
        "'DEFAULT'",
    ):
        assert part in error


TRIALS: list[tuple[list[dict[str, float]], str | int]] = [
    ([{"CPU": 1}, {"CPU": 1}, {"CPU": 1}], 2),
    ([{"CPU": 1}], "tune.PlacementGroupFactory"),
]


def test_trials_of_ray_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune = pytest.importorskip(
        "ray.tune", reason="needs pip install 'ray[tune]'", exc_type=ImportError
    )
    monkeypatch.setenv("RAY_AIR_NEW_OUTPUT", "0")

    def train(config: dict[str, Any]) -> None:
        tune.report({"made": Process().made(None)})

    for bundles, expected in TRIALS:
        tuner = tune.Tuner(
            tune.with_resources(train, tune.PlacementGroupFactory(bundles)),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        )
        (result,) = tuner.fit()
        made = result.metrics["made"]
        assert made == expected if isinstance(expected, int) else expected in made
