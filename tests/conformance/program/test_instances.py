"""Instances that one program hands on to the next."""

from __future__ import annotations

from typing import Any

import pytest

from sb3compat.conformance.findings import EnvFailureError, NotExercisedError
from sb3compat.conformance.program.instances import Instances
from sb3compat.conformance.program.script import Script
from tests.conformance.tiny import TinyVecEnv, one_at_a_time

OPENING = ("env = make_env()", "env.seed(1)", "obs = env.reset()")


class Counted(TinyVecEnv):
    """Counts what is made and what is closed."""

    made = closed = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def counted() -> Any:
    return type("Fresh", (Counted,), {})


def play(instances: Instances, *lines: str, new: bool = False, whole: bool = True) -> Script:
    script = Script(instances, new=new)
    for line in lines:
        script.run(line)
    script.close(keep=whole)
    return script


def test_instances_are_handed_on_only_if_that_is_allowed(counted: Any) -> None:
    for shared, made in ((False, 3), (True, 1)):
        counted.made = counted.closed = 0
        instances = Instances(counted, shared=shared)
        scripts = [play(instances, *OPENING) for _ in range(3)]
        assert counted.made == made
        assert [script.used for script in scripts] == [False, shared, shared]
        instances.close()
        assert counted.closed == made


def test_a_program_that_failed_hands_nothing_on(counted: Any) -> None:
    instances = Instances(counted, shared=True)
    play(instances, *OPENING, whole=False)
    assert counted.closed == 1
    assert not play(instances, *OPENING).used


def test_a_program_may_ask_for_new_ones(counted: Any) -> None:
    instances = Instances(counted, shared=True)
    play(instances, *OPENING)
    assert not play(instances, *OPENING, new=True).used
    assert (counted.made, counted.closed) == (2, 0)


def test_no_more_are_kept_than_a_check_needs(counted: Any) -> None:
    instances = Instances(counted, shared=True)
    play(instances, *[f"env{i} = make_env()" for i in range(9)])
    assert (counted.made, counted.closed) == (9, 6)


def test_single_environments_are_handed_on_too(counted: Any) -> None:
    instances = Instances(TinyVecEnv, [counted, counted], shared=True)
    for _ in range(3):
        play(instances, "singles = [make() for make in reference]")
    assert counted.made == 2


def flaky(*fails: int) -> Any:
    """A factory that raises in these calls."""
    calls = 0

    def make() -> Any:
        nonlocal calls
        calls += 1
        if calls in fails:
            raise OSError("no device")
        return TinyVecEnv()

    return make


def test_a_factory_that_fails_on_some_calls_is_found() -> None:
    instances = Instances(flaky(2))
    play(instances, *OPENING)
    with pytest.raises(EnvFailureError, match="OSError: no device") as raised:
        play(instances, *OPENING)
    assert raised.value.error is instances.failure
    play(instances, *OPENING)


def test_also_where_the_first_instance_might_be_in_the_way() -> None:
    with pytest.raises(EnvFailureError, match="OSError: no device"):
        play(Instances(flaky(2)), "env = make_env()", "twin = make_env()")
    with pytest.raises(NotExercisedError, match="which cannot be made: OSError: no device"):
        play(Instances(flaky(2, 3)), "env = make_env()", "twin = make_env()")


def test_once_it_was_told_the_factory_gets_more_tries() -> None:
    instances = Instances(flaky(1, 2, 3))
    instances.excused = True
    play(instances, *OPENING)
    assert instances.calls == 4


def test_an_instance_that_is_kept_does_not_stand_in_the_way() -> None:
    instances = Instances(one_at_a_time(), shared=True)
    play(instances, *OPENING)
    play(instances, *OPENING, new=True)
    assert instances.failure is None


def test_only_one_at_a_time_as_declared(counted: Any) -> None:
    instances = Instances(counted, shared=True, alone=True)
    with pytest.raises(NotExercisedError, match="as declared"):
        play(instances, "env = make_env()", "twin = make_env()")
    play(instances, *OPENING)
    play(instances, *OPENING, new=True)
    assert counted.made - counted.closed <= 2


def test_a_close_that_hangs_is_not_called(counted: Any) -> None:
    play(Instances(counted, closing=False), *OPENING)
    assert counted.closed == 0
