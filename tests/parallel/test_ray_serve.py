"""The rows of one actor, here without Ray: an actor's class is an ordinary one."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from sb3compat._parallel.memory import Buffers, Segment, buffers_in, shapes_of, size_of
from sb3compat._parallel.messages import Described, Failure, News, dumps_command
from sb3compat._parallel.make_parts import layouts
from sb3compat._parallel.ray_serve import Place, RowsActor
from tests.envs import MakeEnv, ScriptedEnv, script

SCRIPT = script(lengths=(2,), endings=("truncated",))
ROWS = slice(3, 5)  # of 7


def attached(place: Place | None = None) -> RowsActor:
    actor = RowsActor()
    answer, arrays = actor.run(dumps_command("make", [MakeEnv(SCRIPT, i) for i in (3, 4)], 3))
    assert isinstance(pickle.loads(answer), Described)
    assert arrays is None
    spaces = SCRIPT.observation_space, SCRIPT.action_space
    actor.run(dumps_command("attach", shapes_of(*layouts(spaces, 7)), 7, ROWS, place))
    return actor


def parents() -> tuple[Segment, Buffers, Place]:
    """The arrays of a parent, in a segment that ends with a token."""
    shapes = shapes_of(*layouts((SCRIPT.observation_space, SCRIPT.action_space), 7))
    segment = Segment(size_of(shapes, 7) + 2)
    segment.memory[-2:] = b"me"
    if segment.path is None:
        pytest.skip("needs /proc, where memory can be opened by its path")
    return segment, buffers_in(segment.memory, shapes, 7), Place(segment.path, b"me")


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
    for wrong in (place._replace(token=b"no"), place._replace(path="/proc/self/fd/1000")):
        actor = attached(wrong)
        assert actor.run(dumps_command("reset", [5, 6], [{}, {}]))[1] is not None
    assert not buffers.observations[0].any()
    segment.close()


def test_reset_and_step_return_the_arrays_of_its_own_rows() -> None:
    actor = attached()
    began, observations = actor.run(dumps_command("reset", [5, 6], None))
    assert [info["seed"] for info in pickle.loads(began).infos] == [5, 6]
    assert observations is not None
    envs = [ScriptedEnv(SCRIPT, 3), ScriptedEnv(SCRIPT, 4)]
    expected = [env.reset(seed=seed)[0] for env, seed in zip(envs, (5, 6), strict=True)]
    np.testing.assert_array_equal(observations[0], expected)
    for _ in range(2):
        answer, observations, rewards, ended, truncated, finals = actor.step([np.array([1, 2])])
        steps = [env.step(1) for env in envs]
        np.testing.assert_array_equal(rewards, np.float32([step[1] for step in steps]))
        assert list(ended) == list(truncated) == [step[3] for step in steps]
        last = [step[0] for step in steps if step[3]]
        np.testing.assert_array_equal(finals[0], np.reshape(np.float32(last), (-1, 3)))
        news = pickle.loads(answer)
        assert isinstance(news, News)
        assert set(news.infos) == {3, 4}
    np.testing.assert_array_equal(observations[0], [env.reset()[0] for env in envs])


def test_error_names_the_row_among_all() -> None:
    actor = attached()
    failure = pickle.loads(actor.run(dumps_command("reach", "get", ("nothing",), [4]))[0])
    assert isinstance(failure, Failure)
    assert failure.where == "row 4"


def test_command_that_cannot_be_unpickled_is_an_answer() -> None:
    actor = attached()
    assert isinstance(pickle.loads(actor.run(b"nothing")[0]), Failure)
    results: Any = pickle.loads(actor.run(dumps_command("reach", "get", ("row",), [3, 4]))[0])
    assert results == [3, 4]
