"""The rows of an actor, here without Ray."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sb3compat._parallel import serve as module
from sb3compat._parallel.memory import Buffers, Place, Segment, buffers_in, shapes_of, size_of
from sb3compat._parallel.messages import Described, dumps_command, dumps_make
from sb3compat._parallel.parts import layouts
from sb3compat._parallel.serve import RowsActor
from tests.envs import MakeEnv, ScriptedEnv, script

SCRIPT = script(lengths=(2,), endings=("truncated",))
ROWS = slice(3, 5)  # of 7


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "node_id", lambda: "here")


def attached(place: Place | None = None, node: str = "here") -> RowsActor:
    actor = RowsActor()
    answer, arrays = actor.run(dumps_make([MakeEnv(SCRIPT, i) for i in (3, 4)], 3))
    assert isinstance(pickle.loads(answer), Described)
    assert arrays is None
    spaces = SCRIPT.observation_space, SCRIPT.action_space
    actor.run(dumps_command("attach", shapes_of(*layouts(spaces, 7)), 7, ROWS, (node, place)))
    return actor


def parents() -> tuple[Segment, Buffers, Place]:
    """The arrays of a parent, in a segment."""
    shapes = shapes_of(*layouts((SCRIPT.observation_space, SCRIPT.action_space), 7))
    segment = Segment(size_of(shapes, 7))
    if segment.place is None:
        pytest.skip("needs /proc, where memory can be opened by its path")
    return segment, buffers_in(segment.memory, shapes, 7), segment.place


def test_actor_on_the_same_machine_writes_into_the_arrays_of_its_parent() -> None:
    segment, buffers, place = parents()
    actor = attached(place)
    segment.close()
    assert actor.run(dumps_command("reset", [5, 6], [{}, {}]))[1] is None
    envs = [ScriptedEnv(SCRIPT, 3), ScriptedEnv(SCRIPT, 4)]
    expected = [env.reset(seed=seed)[0] for env, seed in zip(envs, (5, 6), strict=True)]
    np.testing.assert_array_equal(buffers.observations[0][ROWS], expected)
    buffers.actions[0][ROWS] = 1
    answer, arrays = actor.step(None)
    assert pickle.loads(answer).infos.keys() == {3, 4}
    assert arrays is None
    np.testing.assert_array_equal(buffers.observations[0][ROWS], [e.step(1)[0] for e in envs])
    assert not buffers.observations[0][:3].any()


def test_memory_of_another_process_at_that_path_is_not_taken() -> None:
    segment, buffers, place = parents()
    for actor in (
        attached(place._replace(file=(0, 0))),
        attached(place._replace(path="/proc/self/fd/1000")),
        attached(place, "elsewhere"),
    ):
        assert actor.run(dumps_command("reset", [5, 6], [{}, {}]))[1] is not None
    assert not buffers.observations[0].any()
    segment.close()
