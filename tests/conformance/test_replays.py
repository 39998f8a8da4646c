"""Rows held against their single environments, and programs against their variants."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from conformance.specimens import rows_env
from conformance.specimens.broken.vector_env_rows import RewardsAreInts
from conformance.specimens.points import Config, Points
from conformance.specimens.rows_env import Form, RowsEnv
from sb3compat.conformance import replays
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.judge import Records
from sb3compat.conformance.replays import beside, single_of
from sb3compat.conformance.run.checking import run_check
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.variants import in_two_halves, with_writing

SETTINGS = Settings(programs=6)
FORM = Form(lengths=(3, 5))


def test_there_is_no_single_environment_without_a_reference() -> None:
    subject = examine(partial(RowsEnv, FORM))
    for (record,) in Records(subject, subject.instances()).of(SETTINGS):
        assert single_of(record, 0) is None
        assert not beside(record)


def test_single_environments_go_on_into_the_episode_after_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where one takes all the steps that they may make, nothing after it would be judged."""
    monkeypatch.setattr(replays, "_MOST_STEPS", 1)
    form = Form(lengths=(5,), steady=True)
    subject = examine(partial(RowsEnv, form), reference=rows_env.reference(form))
    records = [record for (record,) in Records(subject, subject.instances()).of(SETTINGS)]
    assert any(each.episode.by == "auto" for record in records for each in beside(record))


def test_a_script_has_the_single_environment_that_the_demand_is_about() -> None:
    subject = examine(partial(RewardsAreInts, FORM), reference=rows_env.reference(FORM))
    [check] = [check for check in checks_of("vector_env") if check.id == "rows_match_reference"]
    script = run_check(check, subject, SETTINGS).reproduction
    [made] = [line for line in script.splitlines() if line.startswith("single = ")]
    row = made.removeprefix("single = reference[").removesuffix("]()")
    assert f"close(rewards[{row}], single_reward)" in script


@pytest.mark.parametrize(("variant", "pairs"), [(with_writing, 2), (in_two_halves, 5)])
def test_variants_that_use_up_an_instance_are_few_where_making_takes_long(
    variant: Any, pairs: int
) -> None:
    """The first one uses up an instance that there is. A step in two halves uses up none."""
    subject = replace(examine(partial(Points, Config())), shared=True, make_seconds=1.0)
    records = Records(subject, subject.instances())
    assert len(records.of(Settings(programs=5), variant)) == pairs
