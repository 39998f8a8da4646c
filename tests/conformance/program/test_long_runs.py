"""The helpers of reproductions that play whole episodes, or look at what a process has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sb3compat.conformance.program.script import PRELUDE

belongings, kept, pushed, rescaled = map(
    PRELUDE.__getitem__, ("belongings", "kept", "pushed", "rescaled")
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
