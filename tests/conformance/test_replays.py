"""Rows held against their single environments, and programs against their variants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from conformance.specimens import points, rows_env
from conformance.specimens.broken.vector_env_rows import RewardsAreInts
from conformance.specimens.points import Config, Points
from conformance.specimens.rows_env import MODES, Form, RowsEnv
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.checks.tools.comparing import others_alike
from sb3compat.conformance.checks.tools.shifted import rows_alike
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.judge import Demand, Records, twin_of
from sb3compat.conformance.record import Record
from sb3compat.conformance.replays import beside, single_of
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.variants import after_another_episode, first_end, other_actions_in_a_row

SETTINGS = Settings(programs=6)
FORM = Form(lengths=(3, 5))
CONFIG = Config(lengths=(3, 5))


def records(factory: Any, reference: Any = None) -> list[Record]:
    """The records of a few programs, those of several episodes included."""
    subject = examine(factory, reference=reference)
    return [record for (record,) in Records(subject, subject.instances()).of(SETTINGS)]


def of_mode(mode: str | None, **single: Any) -> list[Record]:
    """Records of a correct environment, beside single environments that may be others."""
    if mode is None:
        alone = replace(CONFIG, **single)
        return records(partial(Points, CONFIG), points.reference(alone))
    form = replace(FORM, mode=mode)
    return records(partial(RowsEnv, form), rows_env.reference(replace(form, **single)))


@pytest.mark.parametrize("mode", [None, *MODES])
def test_rows_agree_with_their_single_environments_over_several_episodes(mode: str | None) -> None:
    found = of_mode(mode)
    assert all(each.agrees for record in found for each in beside(record))
    later = [each for record in found for each in beside(record) if each.episode.by != "reset"]
    assert {each.kind for each in later} == {"start", "step", "end"}
    assert {each.row for each in later} == set(found[0].rows)


@pytest.mark.parametrize("mode", [None, *MODES])
def test_the_comparison_of_a_row_ends_with_its_first_difference(mode: str | None) -> None:
    judged = 0
    for record in of_mode(mode, lengths=(40, 5)):
        for i in record.rows:
            mine = [each for each in beside(record) if each.row == i]
            assert all(each.agrees for each in mine[:-1])
            if i % 2 == 0 and any(i in end.ended for end in record.endings):
                judged += 1
                assert not mine[-1].agrees
                assert mine[-1].kind == "end"
                assert not mine[-1].alone_is_over
    assert judged


def test_there_is_no_single_environment_without_a_reference() -> None:
    for record in records(partial(RowsEnv, FORM)):
        assert single_of(record, 0) is None
        assert not beside(record)


def test_a_script_has_the_single_environment_that_the_demand_is_about() -> None:
    subject = examine(partial(RewardsAreInts, FORM), reference=rows_env.reference(FORM))
    [check] = [check for check in checks_of("vector_env") if check.id == "rows_match_reference"]
    script = run_check(check, subject, SETTINGS).reproduction
    [made] = [line for line in script.splitlines() if line.startswith("single = ")]
    row = made.removeprefix("single = reference[").removesuffix("]()")
    assert f"close(rewards[{row}], single_reward)" in script


@pytest.mark.parametrize("mode", [None, *MODES])
def test_after_another_episode_a_program_goes_as_before(mode: str | None) -> None:
    ways = [(record, first_end(record)) for record in of_mode(mode)]
    assert any(way for _, way in ways)
    for record, way in ways:
        steps = twin_of(record, after_another_episode).steps if way else []
        assert len(steps) >= 2 * len(way)
        assert [step.ended for step in steps[len(steps) - len(way) :]] == [s.ended for s in way]


@pytest.mark.parametrize("mode", [None, *MODES])
def test_the_actions_of_one_row_make_no_difference_to_others(mode: str | None) -> None:
    found = of_mode(mode)
    demands = [demand for record in found for demand in judged(others_alike, record)]
    assert demands
    assert all(demand.holds() for demand in demands)
    for record in found:
        assert len(twin_of(record, other_actions_in_a_row).steps) == len(record.steps)


@pytest.mark.parametrize("mode", MODES)
def test_rows_do_as_the_ones_before_under_the_next_seed(mode: str) -> None:
    form = Form(mode=mode, kind="counted", lengths=(4,), endings=("truncated",))
    found = records(partial(RowsEnv, form))
    demands = [demand for record in found for demand in judged(rows_alike, record)]
    assert demands
    assert all(demand.holds() for demand in demands)


def judged(clause: Any, record: Record) -> Iterator[Demand]:
    """What a clause demands of a record, if it can tell."""
    with suppress(NotExercisedError):
        yield from clause(record)
