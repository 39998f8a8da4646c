"""Instances that one program hands on to the next."""

from __future__ import annotations

from typing import Any

import pytest

from sb3compat.conformance.findings import NotExercisedError
from sb3compat.conformance.program.instances import Instances
from tests.conformance.tiny import TinyVecEnv, one_at_a_time


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


def used(instances: Instances, *, new: bool = False) -> bool:
    """Lend an instance; whether it was used before."""
    with instances.lent(new=new) as (env, used_before):
        env.seed(1)
        env.reset()
    return used_before


def take(instances: Instances, number: int) -> list[Any]:
    """So many instances for one program."""
    return [instances.take(k)[0] for k in range(number)]


def test_instances_are_handed_on_only_if_that_is_allowed(counted: Any) -> None:
    for shared, made in ((False, 3), (True, 1)):
        counted.made = counted.closed = 0
        instances = Instances(counted, shared=shared)
        assert [used(instances) for _ in range(3)] == [False, shared, shared]
        assert counted.made == made
        instances.close()
        assert counted.closed == made


def test_a_program_that_failed_hands_nothing_on(counted: Any) -> None:
    instances = Instances(counted, shared=True)
    with pytest.raises(ValueError, match="failed"), instances.lent():
        raise ValueError("failed")
    assert counted.closed == 1
    assert not used(instances)


def test_a_program_may_ask_for_new_ones(counted: Any) -> None:
    instances = Instances(counted, shared=True)
    used(instances)
    assert not used(instances, new=True)
    assert (counted.made, counted.closed) == (2, 0)


def test_no_more_are_kept_than_a_check_needs(counted: Any) -> None:
    instances = Instances(counted, shared=True)
    assert len(instances.give_back(take(instances, 9), keep=True)) == 6


def test_single_environments_are_handed_on_too(counted: Any) -> None:
    instances = Instances(TinyVecEnv, [counted, counted], shared=True)
    for _ in range(3):
        assert [make() for make in instances.reference or ()]
        instances.give_back([], keep=True)
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
    used(instances)
    with pytest.raises(OSError, match="no device") as raised:
        used(instances)
    assert raised.value is instances.failure
    used(instances)


def test_also_where_the_first_instance_might_be_in_the_way() -> None:
    with pytest.raises(OSError, match="no device"):
        take(Instances(flaky(2)), 2)
    with pytest.raises(NotExercisedError, match="which cannot be made: OSError: no device"):
        take(Instances(flaky(2, 3)), 2)


def test_calls_of_a_factory_that_is_gone_are_forgotten() -> None:
    for _ in range(9):  # whose number the next one may get
        instances = Instances(flaky())
        used(instances)
        assert instances.calls == 1


def test_once_it_was_told_the_factory_gets_more_tries() -> None:
    instances = Instances(flaky(1, 2, 3))
    instances.excused = True
    used(instances)
    assert instances.calls == 4


def test_an_instance_that_is_kept_does_not_stand_in_the_way() -> None:
    instances = Instances(one_at_a_time(), shared=True)
    used(instances)
    used(instances, new=True)
    assert instances.failure is None


def test_only_one_at_a_time_as_declared(counted: Any) -> None:
    instances = Instances(counted, shared=True, alone=True)
    with pytest.raises(NotExercisedError, match="as declared"):
        take(instances, 2)
    used(instances)
    used(instances, new=True)
    assert counted.made - counted.closed <= 2


def test_a_close_that_hangs_is_not_called(counted: Any) -> None:
    used(Instances(counted, closing=False))
    assert counted.closed == 0
