"""The helpers of reproductions that play whole episodes, or look at what a process has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sb3compat.conformance.program.script import PRELUDE

belongings, kept, paid_ahead, pushed, rescaled = map(
    PRELUDE.__getitem__, ("belongings", "kept", "paid_ahead", "pushed", "rescaled")
)


def test_what_all_starts_share_must_not_be_missing_everywhere() -> None:
    starts = [{"x": np.array([0, k]), "n": 1} for k in range(5)]
    assert kept(starts, [{"x": np.array([0, 9]), "n": 1}])
    assert kept(starts, [{"x": np.array([1, 9]), "n": 1}, starts[0]])
    assert not kept(starts, [{"x": np.array([1, 9]), "n": 1}] * 2)
    assert not kept(starts, [{"x": np.array([0, 9]), "n": 2}])


def test_sequences_are_compared_as_far_as_they_go() -> None:
    starts = [(np.ones(2), *map(np.array, range(k))) for k in range(3)]
    assert kept(starts, [(np.ones(2), np.array(7))])
    assert kept(starts, [(np.ones(3),)])
    assert not kept(starts, [(np.zeros(2), np.array(7))])


DRAWN = np.random.default_rng(0)


def paid(pay: Any, at_ends: str, actions: Any = None, *, noise: float = 0.0) -> Any:
    """`paid_ahead` of drawn steps, rewarded by the places before and after, and by the action."""
    count, ends = 60, 6
    before, after = DRAWN.normal(size=(2, count + ends, 3))
    firsts = DRAWN.normal(size=(ends, 3))
    acts = list(DRAWN.integers(0, 3, count + ends)) if actions is None else actions(count + ends)
    ahead = np.concatenate([after[:count], firsts]) if at_ends == "ahead" else after
    rewards = [pay(*each) + noise * k for k, each in enumerate(zip(before, ahead, acts))]  # noqa: B905
    usual, last = slice(count), slice(count, None)
    columns = (before, acts, after, rewards)
    return paid_ahead(*(c[usual] for c in columns), *(c[last] for c in columns), firsts)


def distance(before: Any, after: Any, action: Any) -> Any:
    return after[1] - before[1] + 0.1 * np.ravel(action)[0]


def cost(before: Any, after: Any, action: Any) -> Any:
    return -(after @ after) - 0.5 * before[0]


@pytest.mark.parametrize("pay", [distance, cost])
def test_rewards_of_last_steps_may_be_for_the_next_start(pay: Any) -> None:
    assert paid(pay, "ahead") is True
    assert paid(pay, "own") is False
    assert paid(pay, "ahead", noise=0.5) is None


@pytest.mark.parametrize(
    ("pay", "actions"),
    [
        (lambda before, after, action: 1.0, None),
        (lambda before, after, action: before[0], None),
        (lambda before, after, action: np.inf, None),
        (distance, lambda n: [np.full(1 + k % 2, 1) for k in range(n)]),
        (distance, lambda n: [np.array([np.nan])] * n),
        (lambda before, after, action: after[0] - before[0], lambda n: ["text"] * n),
    ],
)
def test_rewards_without_a_formula_that_tells_are_not_judged(pay: Any, actions: Any) -> None:
    assert paid(pay, "ahead", actions) is None


WALK = np.arange(20.0)[:, None] * [0.1, 0.5]


@pytest.mark.parametrize(
    ("last", "other"),
    [
        (WALK + 0.1, False),
        (20 * WALK + 0.1, True),
        (WALK / 20 + 0.1, True),
        (WALK * [20, 1], False),  # some of it may be counted double at an end
        (WALK + 1000, False),  # far away, as somewhere else
        (WALK * 0, False),
        (np.sin(9.7 * WALK * WALK) * 50, False),
    ],
)
def test_another_scale_is_a_multiple_in_all_that_steps_move(last: Any, other: bool) -> None:
    assert rescaled(list(WALK), list(WALK + 0.1), list(WALK), list(last)) is other
    # An entry that has often stood still may be a flag.
    assert not rescaled(list(WALK), list(WALK), list(WALK), list(last))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_stack_of_frames_is_pushed_on_along_its_axis(axis: int) -> None:
    stacks = [np.arange(k, k + 6).reshape(3, 2) for k in (0, 2, 4)]
    stacks = stacks if axis == 0 else [stack.T for stack in stacks]
    assert pushed(stacks[:2], stacks[1:], axis, 1)
    assert not pushed(stacks[:1], stacks[2:], axis, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_thread_that_ends_meanwhile_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Path.read_text
    command = [sys.executable, "-c", "print(); input()"]
    processes = [subprocess.Popen(command, stdin=-1, stdout=-1) for _ in range(2)]
    pid = str(processes[0].pid)
    gone = ["children", pid]

    def read_text(path: Path, *args: Any, **kwargs: Any) -> str:
        for name in gone:
            if path.name == name or path == Path("/proc", name, "cmdline"):
                gone.remove(name)
                raise FileNotFoundError(path)
        return usual(path, *args, **kwargs)

    try:
        for process in processes:
            assert process.stdout
            process.stdout.readline()  # for a moment, a new process has no command line
        everything = belongings()
        monkeypatch.setattr(Path, "read_text", read_text)
        # One of the processes looks as if it had ended, too.
        assert everything - belongings() == {f"process {pid}"}
        assert not gone
    finally:
        for process in processes:
            process.communicate()


def test_a_scale_that_time_explains_is_no_other_one() -> None:
    peaks = np.arange(700.0, 720)
    times = np.linspace(0, 1, 46)
    path = np.array([[[p * np.sin(np.pi * t), t] for t in times] for p in peaks])
    before, after = path[:, :-2].reshape(-1, 2), path[:, 1:-1].reshape(-1, 2)
    assert not rescaled(list(before), list(after), list(path[:, -2]), list(path[:, -1]))
    hidden = [list(part[:, :1]) for part in (before, after, path[:, -2], path[:, -1])]
    assert not rescaled(*hidden)


def test_numbers_of_a_dict_have_their_places_by_the_keys() -> None:
    """What an environment returns may have another order than the batch of it."""
    one, other = {"b": np.array([1.0]), "a": {"d": 2, "c": 3}}, {"a": {"c": 3, "d": 2}, "b": [1.0]}
    assert [PRELUDE["numbers_in"](obs).tolist() for obs in (one, other)] == [[3.0, 2.0, 1.0]] * 2
