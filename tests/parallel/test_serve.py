"""The loop of a worker process, over a real pipe; the rows of an actor, here without Ray."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from typing import Any

import numpy as np
import pytest

from sb3compat._parallel import serve as module
from sb3compat._parallel.extras import Extras
from sb3compat._parallel.memory import Buffers, Place, Segment, buffers_in, shapes_of, size_of
from sb3compat._parallel.messages import Described, Failure, dumps_command, dumps_make
from sb3compat._parallel.parts import layouts
from sb3compat._parallel.serve import RowsActor, serve
from tests.envs import MakeEnv, ScriptedEnv, fns, script


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    # Handlers belong to the main thread.
    monkeypatch.setattr(module.signal, "signal", lambda *_: signal.SIG_DFL)
    ours, theirs = Pipe()
    thread = threading.Thread(target=serve, args=(theirs, fns(2)))
    thread.start()
    yield ours
    ours.close()
    thread.join()
    theirs.close()


def ask(pipe: Any, *command: Any) -> Any:
    pipe.send_bytes(dumps_command(*command))
    return pickle.loads(pipe.recv_bytes())


def test_functions_may_come_with_the_process_or_with_the_command(pipe: Any) -> None:
    assert ask(pipe, "make", None, 0).rows == [1, 1]
    assert ask(pipe, "close") is None


def test_command_that_cannot_be_unpickled_is_an_answer(pipe: Any) -> None:
    pipe.send_bytes(b"\x80\x04\x8c\x0bno_such_mod\x8c\x01x\x93.")
    failure = pickle.loads(pipe.recv_bytes())
    assert isinstance(failure, Failure)
    with pytest.raises(ModuleNotFoundError):
        failure.reraise()


def test_closed_pipe_ends_the_worker_and_closes_its_rows(pipe: Any) -> None:
    ask(pipe, "make", None, 0)


# --- actors ---------------------------------------------------------------------------------------

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


def test_reset_and_step_return_the_arrays_of_its_own_rows() -> None:
    actor = attached()
    began, observations = actor.run(dumps_command("reset", [5, 6], None))
    assert [info["seed"] for info in pickle.loads(began).reset_infos.values()] == [5, 6]
    assert observations is not None
    envs = [ScriptedEnv(SCRIPT, 3), ScriptedEnv(SCRIPT, 4)]
    expected = [env.reset(seed=seed)[0] for env, seed in zip(envs, (5, 6), strict=True)]
    np.testing.assert_array_equal(observations[0], expected)
    for _ in range(2):
        answer, observations, rewards, ended, truncated = actor.step([np.array([1, 2])])
        steps = [env.step(1) for env in envs]
        np.testing.assert_array_equal(rewards, np.float32([step[1] for step in steps]))
        assert list(ended) == list(truncated) == [step[3] for step in steps]
        extras = pickle.loads(answer)
        assert isinstance(extras, Extras)
        assert set(extras.infos) == {3, 4}
        last = {i: step[0] for i, step in enumerate(steps, 3) if step[3]}
        for row, observation in last.items():
            final = extras.infos[row]["terminal_observation"]
            np.testing.assert_array_equal(final, np.float32(observation))
    np.testing.assert_array_equal(observations[0], [env.reset()[0] for env in envs])
