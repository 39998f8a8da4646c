"""Actors of a real Ray cluster of several nodes: equal streams, faults, lost nodes, restarts."""

from __future__ import annotations

import gc
import signal
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sb3compat
from sb3compat import ParallelVecEnv
from sb3compat._parallel import workers
from tests import interrupts
from tests.envs import script
from tests.interpreter import needs_sb3
from tests.interrupts import ERRORS, count, counting, interrupt, no_hang, raised_by
from tests.lockstep import lockstep
from tests.native import NativeEnv, RestartsRows
from tests.parallel.conftest import STORE
from tests.parallel.failing import ACTIONS, WorkerProcess, known, on_ray, opened, processes_of
from tests.parallel.known import Known
from tests.parallel.teams import KINDS, PROGRAM, parts_of, split
from tests.profiles import nightly, some
from tests.strategies import programs, scripts

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'sb3compat[ray]'")
# Ray starts threads in this process, which must not fork from then on.
pytestmark = pytest.mark.ray

# --- the stream -------------------------------------------------------------------------------


@needs_sb3
@pytest.mark.usefixtures("connected")
@given(data=st.data(), n=st.integers(1, 5), workers=st.integers(1, 2))
@settings(
    max_examples=60 if nightly() else 3, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_single_environments_equal_dummy_vec_env(data: st.DataObject, n: int, workers: int) -> None:
    lockstep(data.draw(scripts()), n, lambda fns: on_ray(fns, workers), data.draw(programs(n)))


def nested(fns: Any) -> ParallelVecEnv:
    return ParallelVecEnv(fns, workers=2)


def nested_in_ray(fns: Any) -> Any:
    return on_ray(fns, 1, actor_options={"num_cpus": 0})


# Importing SB3 takes seconds: the parts that do it are in one actor.
WITH_SB3 = [("dummy", 1), ("nested", 2), ("nested_in_ray", 1)]
# Ray's processes have threads, so that no part forks.
SHAPES = {
    1: [("single", 2), ("same_step", 3), ("single", 2)],
    2: [("single", 1), ("sync", 1), ("wrapped", 1), *WITH_SB3],
    3: [("single", 4), ("same_step", 3)],
}


@needs_sb3
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("workers", SHAPES)
def test_parts_of_every_kind_equal_dummy_vec_env(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for make in (nested, nested_in_ray):
        monkeypatch.setitem(KINDS, make.__name__, make)
    chosen = script(lengths=(2, 3), endings=("truncated", "both"))
    lockstep(chosen, 7, lambda fns: on_ray(parts_of(fns, SHAPES[workers]), workers), PROGRAM)


def spread(fns: Any, workers: int, far: int) -> Any:
    """Rows in this process's node, and this many workers on another one."""
    near = {"resources": {"near": 1}, "num_cpus": 0}
    env = on_ray(fns, workers, actor_options=near)
    team = env._source._workers
    team._options["resources"] = {"far": 1}
    for worker in range(workers - far, workers):
        team.lost[worker] = "moved to another node"
        team.restart(worker)
    assert len(team._sharing) == workers - far
    return env


@needs_sb3
@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("far", some([1, 2]))
def test_large_observations_of_other_nodes_equal_dummy_vec_env(far: int) -> None:
    # 180 kB for each actor; Ray sends up to 100 kB with the message.
    chosen = script(observation_space=Box(0, 255, (300, 200), np.uint8), lengths=(2, 3))
    lockstep(chosen, 6, lambda fns: spread(fns, 2, far), [PROGRAM[0], *PROGRAM[2:]])


@needs_sb3
@pytest.mark.usefixtures("connected")
def test_native_parts_on_another_node_equal_dummy_vec_env() -> None:
    def build(fns: Any) -> Any:
        kinds = zip(split(fns, [2, 3]), (NativeEnv, RestartsRows), strict=True)
        parts = [partial(cls, own, AutoresetMode.DISABLED) for own, cls in kinds]
        return spread(parts, 2, far=1)

    chosen = script(lengths=(2, 3), endings=("truncated", "both"), infos="none")
    steps = [("step", number) for number in range(8)]
    lockstep(chosen, 5, build, [("seed", 3), ("reset", None), *steps])


# --- faults -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("connected")
def test_actors_on_the_node_of_the_parent_share_its_memory_and_do_not_import_sb3() -> None:
    near = {"num_cpus": 0, "resources": {"near": 1}}
    env = opened(known(), make=on_ray, copy=False, actor_options=near)
    team = env._source._workers
    assert team._sharing == {0, 1}
    assert env.reset() is env.step(ACTIONS)[0] is team.buffers.observations[0]
    assert env.env_method("loaded", indices=[0, 4]) == [[], []]


@pytest.mark.usefixtures("connected")
def test_forgotten_environment_ends_its_actors() -> None:
    env = ParallelVecEnv(known(), workers=1, backend="ray")
    env.reset()
    actors = processes_of(env)
    del env
    gc.collect()
    assert all(actor.has_ended() for actor in actors)


def test_node_that_is_lost_in_a_step_is_named_or_its_rows_go_on_elsewhere(connected: Any) -> None:
    node = connected.add_node(num_cpus=2, object_store_memory=STORE, resources={"doomed": 2})
    there = {"resources": {"doomed": 1}}
    exact = opened(known("hang"), 1, on_ray, actor_options=there)
    exact.step(ACTIONS)
    exact.step_async(ACTIONS)
    # The part of one actor can be elsewhere, too: SPREAD would not tell where.
    going_on = opened(
        known(), 1, on_ray, on_worker_lost="restart", actor_options={"num_cpus": 0} | there
    )
    going_on.step(ACTIONS)
    connected.remove_node(node, allow_graceful=False)
    with pytest.raises(sb3compat.WorkerError, match="rows 0 to 4 has died"):
        exact.step_wait()
    # Until Ray itself counts the node as lost, it may send an actor there once more.
    with no_hang():
        while any(each["Alive"] and "doomed" in each["Resources"] for each in ray.nodes()):
            pass
    going_on._source._workers._schedule_timeout = 1.0
    with pytest.raises(sb3compat.WorkerError) as caught:
        going_on.step(ACTIONS)
    assert "doomed: 1" in str(caught.value)
    back = connected.add_node(num_cpus=2, object_store_memory=STORE, resources={"doomed": 2})
    going_on._source._workers._schedule_timeout = None
    np.testing.assert_array_equal(going_on.reset()[0], Known(0).reset()[0])
    assert not going_on.step(ACTIONS)[2].any()
    going_on.close()
    connected.remove_node(back)


@pytest.mark.usefixtures("connected")
@pytest.mark.skipif(not nightly(), reason="takes long")
def test_killed_actor_leaves_no_process_of_a_part() -> None:
    env = on_ray([lambda: ParallelVecEnv(known(), workers=2)], 1)
    inner = [WorkerProcess(pid) for pid in set(env.env_method("pid"))]
    assert len(inner) == 2
    env._source._workers._kill(0)
    assert all(process.has_ended() for process in inner)


# --- interrupts -------------------------------------------------------------------------------


@pytest.mark.usefixtures("connected")
def test_signal_handler_may_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_CLOSE_SECONDS", 0.2)
    env = opened(known("hang"), make=on_ray)
    env.step(ACTIONS)
    with raised_by(signal.SIGALRM, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            env.step(ACTIONS)


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("error", ERRORS)
def test_message_that_was_interrupted_when_it_was_sent_is_awaited(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_CLOSE_SECONDS", 0.2)
    env = opened(known("hang", row=0), make=on_ray)
    env.step(ACTIONS)
    send = ray.actor.ActorMethod.remote

    def sent(*args: Any) -> None:
        send(*args)
        raise error("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(ray.actor.ActorMethod, "remote", sent)
        with pytest.raises(error):
            env.step(ACTIONS)
    with no_hang():
        env.close()


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("near", [True, False])
def test_what_a_handler_raises_within_ray_arrives_and_ends_no_actor(
    near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = ("/ray/actor.py", "/ray/_private/worker.py", "/ray/_private/serialization.py")
    monkeypatch.setattr(interrupts, "TRACED", inside)
    where = {"num_cpus": 0, "resources": {"near" if near else "far": 1}}
    env = opened(counting(5), 2, on_ray, on_worker_lost="restart", actor_options=where)
    env.seed(3)
    first = env.reset()
    step = partial(env.step, ACTIONS)
    for at in range(1, count(step) + 1, 3 if nightly() else 40):
        env.reset()
        with no_hang():
            assert interrupt(step, at, ERRORS[at % 2]), f"lost at {at}"
        env.seed(3)
        np.testing.assert_array_equal(env.reset(), first)
        assert not env.step(ACTIONS)[2].any()
    assert env.worker_times().restarts == 0
