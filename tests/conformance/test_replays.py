"""Rows held against their single environments, and programs against their variants."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from conformance.specimens import points, rows_env
from conformance.specimens.broken.vector_env_rows import RewardsAreInts
from conformance.specimens.points import Config, Points
from conformance.specimens.rows_env import MODES, Form, RowsEnv
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.judge import Records, twin_of
from sb3compat.conformance.record import Record
from sb3compat.conformance.replays import beside, single_of
from sb3compat.conformance.run.checking import run_check
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.variants import (
    after_another_episode,
    first_end,
    in_two_halves,
    with_writing,
)

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


@pytest.mark.parametrize(("variant", "pairs"), [(with_writing, 2), (in_two_halves, 5)])
def test_variants_that_use_up_an_instance_are_few_where_making_takes_long(
    variant: Any, pairs: int
) -> None:
    """The first one uses up an instance that there is. A step in two halves uses up none."""
    subject = replace(examine(partial(Points, Config())), shared=True, make_seconds=1.0)
    records = Records(subject, subject.instances())
    assert len(records.of(Settings(programs=5), variant)) == pairs
