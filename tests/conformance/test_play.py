"""Plays: what a check draws and runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conformance.specimens.rows_env import Form, RowsEnv
from sb3compat.conformance.checks.catalogue import find_check
from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.play import Play
from sb3compat.conformance.program.script import Script
from sb3compat.conformance.run.search import run_check
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from sb3compat.conformance.subject.subject import Subject
from tests.conformance.tiny import TinyVecEnv


def played(subject: Subject, check: Callable[[Play], None], programs: int = 20) -> None:
    """Run a function on some plays."""

    @settings(
        max_examples=programs, phases=[Phase.generate], database=None, deadline=None,
        derandomize=True,
    )  # fmt: skip
    @given(st.data())
    def run(data: st.DataObject) -> None:
        script = Script(subject.factory)
        try:
            check(Play(subject, script, data))
        finally:
            script.close()

    run()


def test_actions_are_inside_the_space() -> None:
    drawn: set[str] = set()

    def check(play: Play) -> None:
        play.start()
        play.step()
        play.run(f"actions = {play.actions()}")
        drawn.add(str(play.value("actions.tolist()")))
        assert play.value("all(env.action_space.contains(action) for action in actions)")

    played(examine(TinyVecEnv), check, 50)
    assert {"[0, 0]", "[1, 1]", "[0, 1]"} <= drawn


def test_to_ending_returns_the_rows_that_ended() -> None:
    def check(play: Play) -> None:
        rows = play.to_ending()
        assert rows == [0]
        assert play.running() == [1]
        assert play.script.steps == 3

    played(examine(TinyVecEnv), check)


def test_no_ending_means_not_exercised() -> None:
    subject = replace(examine(TinyVecEnv), endings=())

    def check(play: Play) -> None:
        assert play.known_ending() is None
        with pytest.raises(NotExercisedError):
            play.to_ending()

    played(subject, check, 1)


def test_go_on_resets_the_rows_that_ended_in_disabled_mode() -> None:
    # No single step ends an episode of this length.
    subject = examine(lambda: RowsEnv(Form(mode="Disabled", lengths=(3,))), seconds=60)

    def check(play: Play) -> None:
        rows = play.to_ending()
        assert play.awaiting_reset() == rows
        play.go_on()
        assert [line for line in play.script.lines if "reset_mask" in line]
        assert not {*rows} & {*play.ended()}

    played(subject, check, 5)


@pytest.mark.parametrize(("partly", "status"), [(True, "partly_exercised"), (False, "passed")])
def test_a_part_of_a_contract_is_not_the_whole(partly: bool, status: str) -> None:
    def function(play: Play) -> None:
        play.make()
        # A single program that tests all of it is enough.
        if partly or play.draw(st.booleans()):
            play.partly("no lamp: pass --lamp")

    check = replace(find_check("vec_env", "num_envs_positive"), function=function)
    result = run_check(check, examine(TinyVecEnv, seconds=None), Settings(seconds=0.2))
    assert (result.status, result.message) == (status, "no lamp: pass --lamp" if partly else "")
