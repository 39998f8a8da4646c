"""The rows of an actor, here without Ray."""

from __future__ import annotations

import pytest

from sb3compat._parallel import serve as module
from sb3compat._parallel.memory import Place, Segment, buffers_in, size_of
from sb3compat._parallel.messages import dumps_command, dumps_make
from sb3compat._parallel.parts import layouts
from sb3compat._parallel.serve import RowsActor
from tests.envs import MakeEnv, script

SCRIPT = script()
BATCHES = layouts((SCRIPT.observation_space, SCRIPT.action_space), 7)
ROWS = slice(3, 5)  # of 7


def shares(place: Place, node: str = "here") -> bool:
    """Whether an actor that gets this place writes its observations there."""
    actor = RowsActor()
    actor.run(dumps_make([MakeEnv(SCRIPT, i) for i in (3, 4)], 3))
    actor.run(dumps_command("attach", 7, ROWS, (node, place)))
    return actor.run(dumps_command("reset", [5, 6], [{}, {}]))[1] is None


def test_memory_of_another_process_at_that_path_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "node_id", lambda: "here")
    segment = Segment(size_of(*BATCHES))
    observations = buffers_in(segment.memory, *BATCHES).observations[0]
    place = segment.place
    if place is None:
        pytest.skip("needs /proc, where memory can be opened by its path")
    assert not shares(place._replace(file=(0, 0)))
    assert not shares(place._replace(path="/proc/self/fd/1000"))
    assert not shares(place, "elsewhere")
    assert not observations.any()
    assert shares(place)
    assert observations[ROWS].all()
    assert not observations[:3].any()
    segment.close()
