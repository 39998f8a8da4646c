"""Single environments that need not be passed, as it is known how a vector environment has them."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import SyncVectorEnv

from sb3compat.conformance.run.reproduction import reproduction
from sb3compat.conformance.subject.examine import examine
from sb3compat.conformance.subject.settings import Settings
from tests.conformance.found import find_check
from tests.conformance.kit import judge

CARTPOLE = partial(gym.make, "CartPole-v1")


class Changed(SyncVectorEnv):
    """A subclass may change what its single environments return."""


def sync(cls: type = SyncVectorEnv, **options: Any) -> Any:
    return cls([CARTPOLE] * 2, **options)


def dummy() -> Any:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    return vec_env.DummyVecEnv([CARTPOLE] * 2)


def subproc(make: Any = CARTPOLE) -> Any:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    return vec_env.SubprocVecEnv([make] * 2, start_method="fork")


def heavy() -> Any:
    env: Any = gym.make("CartPole-v1")
    env.unwrapped.gravity = 20.0
    return env


def without_its_limit() -> Any:
    env: Any = gym.make("CartPole-v1").unwrapped
    env.spec = gym.spec("CartPole-v1")
    return env


def unrecorded() -> Any:
    class Own(gym.Wrapper[Any, Any, Any, Any]):
        pass

    return Own(gym.make("CartPole-v1"))


def unregistered() -> Any:
    env: Any = gym.make("CartPole-v1").unwrapped
    env.spec = None
    return env


@pytest.mark.parametrize("make", [heavy, without_its_limit, unrecorded, unregistered])
def test_specs_count_only_where_the_rows_are_as_they_say(make: Any) -> None:
    assert not examine(partial(subproc, make), seconds=None).referenced


def test_singles_of_specs_are_compared_with() -> None:
    results = judge(examine(subproc), only=["rows_match_reference"])
    assert {result.status for result in results.values()} == {"passed"}


@pytest.mark.parametrize("factory", [sync, dummy, subproc])
def test_those_of_known_classes_are_known(factory: Any) -> None:
    subject = examine(factory, seconds=None)
    assert subject.referenced
    assert subject.capabilities["reference"]
    singles = subject.instances().reference
    assert singles is not None
    first, again = singles[0](), singles[0]()
    assert first is not again
    assert isinstance(first, gym.Env)


def test_those_of_other_classes_are_not() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    for factory in (
        lambda: sync(Changed),
        lambda: vec_env.VecMonitor(dummy()),
    ):
        assert not examine(factory, seconds=None).referenced


@pytest.mark.parametrize("name", ["reference", "separate_rows"])
def test_a_declaration_wins(name: str) -> None:
    """A row of a world that all rows share does not do what its single environment does alone."""
    assert not examine(sync, seconds=None, declared={name: False}).referenced


@pytest.mark.parametrize("factory", [sync, dummy, subproc])
def test_a_script_makes_them_itself(factory: Any) -> None:
    subject = examine(factory, seconds=None)
    check = find_check(subject.family, "rows_match_reference")
    source = (
        "import gymnasium as gym\nfrom functools import partial\n"
        "from tests.conformance.subject.test_singles import sync, dummy, subproc\n"
        f"make_env = {factory.__name__}"
    )
    lines = [
        "singles = [make() for make in reference]",
        "assert all(single.spec.id == 'CartPole-v0' for single in singles)",
    ]
    script = reproduction(check, subject, Settings(make_env=source), lines)
    with pytest.raises(AssertionError):
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
    assert "reference =" not in reproduction(check, subject, Settings(), ["env = make_env()"])
