"""What a Ray cluster is asked for: initialising it, options, places for actors, room for arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from math import inf
from pathlib import Path
from typing import Any

import pytest

import sb3compat
from sb3compat import ParallelVecEnv
from tests.interpreter import REPOSITORY, run
from tests.parallel.conftest import STORE
from tests.parallel.failing import (
    ACTIONS,
    WorkerProcess,
    known,
    on_ray,
    opened,
    processes_of,
)
from tests.parallel.known import Known, Large
from tests.profiles import some

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'sb3compat[ray]'")
# Ray starts threads in this process, which must not fork from then on.
pytestmark = pytest.mark.ray


PARENT = """
import ray, sb3compat
from tests.parallel.known import Known
make = [lambda: Known(0)]
other = sb3compat.ParallelVecEnv(make, backend="ray")
other.close()
assert ray.is_initialized()  # `close` ends the actors, and not Ray
half = {"num_cpus": 0.4}
env = sb3compat.ParallelVecEnv(make * 2, backend="ray", actor_options=half)
print(*env.env_method("pid"), flush=True)
input()
"""


def test_killed_parent_leaves_no_actor_and_ray_is_initialised_as_by_default(cluster: Any) -> None:
    # `ray.init()` joins the cluster that RAY_ADDRESS names, as it does for `ray job submit`.
    path = os.pathsep.join([str(REPOSITORY), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "RAY_ADDRESS": cluster.address}
    command = [sys.executable, "-c", PARENT]
    parent = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    actors = [WorkerProcess(int(pid)) for pid in parent.stdout.readline().split()]
    assert len({actor.pid for actor in actors}) == 2  # there is room for ten
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert all(actor.has_ended() for actor in actors)


@pytest.mark.parametrize(
    "arguments", some([["--workers", "2"], ["--machines", "2", "--cores", "1"]])
)
def test_example_trains_on_the_cluster(arguments: list[str], cluster: Any, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    example = REPOSITORY / "docs" / "examples" / "train_on_cluster.py"
    how = ("--rows", 8, "--timesteps", 4096, *arguments)
    done = run(example, *how, cwd=tmp_path, RAY_ADDRESS=cluster.address)
    assert done.returncode == 0, done.stderr
    assert "8 rows in 2 workers" in done.stdout
    assert "trained for 4096 frames" in done.stdout


@pytest.mark.usefixtures("connected")
def test_actors_without_a_place_are_an_error_that_says_what_was_asked_for_and_what_there_is() -> (
    None
):
    options = {"resources": {"far": 3, "magic": 1}, "scheduling_strategy": "SPREAD"}
    with pytest.raises(sb3compat.WorkerError) as caught:
        on_ray(known(), 2, actor_options=options, schedule_timeout=0.5)
    for part in (
        "2 Ray actors with CPU: 1, far: 3, magic: 1, scheduling_strategy='SPREAD' each to start",
        "2 did not within schedule_timeout=0.5 seconds",
        "The cluster has CPU: 4, far: 4, memory: ",
        "of which CPU: 4, far: 4, memory: ",
    ):
        assert part in str(caught.value)
    ray.get(ray.remote(lambda: None).options(num_cpus=2).remote(), timeout=60)  # none is waiting


def test_actors_bound_to_a_node_that_is_gone_are_an_error(connected: Any) -> None:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    node = connected.add_node(num_cpus=1, object_store_memory=STORE)
    connected.remove_node(node)
    strategy = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
    with pytest.raises(sb3compat.WorkerError, match="1 did not at all") as caught:
        on_ray(known(), 1, actor_options={"scheduling_strategy": strategy})
    assert isinstance(caught.value.__cause__, ray.exceptions.ActorUnschedulableError)


@pytest.mark.usefixtures("connected")
def test_runtime_env_arrives_or_is_a_clear_error() -> None:
    env = on_ray(
        [lambda: Known(0, os.environ["HOW"])], 1,
        actor_options={"runtime_env": {"env_vars": {"HOW": "never"}}},
    )  # fmt: skip
    assert env.get_attr("how") == ["never"]
    env.close()
    with pytest.raises(sb3compat.WorkerError, match=r"actor_options=.*no-such-environment"):
        on_ray(known(), 1, actor_options={"runtime_env": {"conda": "no-such-environment"}})


@pytest.mark.usefixtures("connected")
def test_object_store_that_is_too_small_for_an_answer_is_an_error() -> None:
    env = opened([lambda: Large(0, 8, 120 * 2**20), lambda: Large(1, 8)], 2, on_ray)
    with pytest.raises(sb3compat.WorkerError, match=r"(?i)row 0 .*object"):
        env.step([0, 0])


@pytest.mark.usefixtures("connected")
def test_default_number_of_workers_is_what_the_cluster_has_room_for() -> None:
    from sb3compat._parallel.ray_cluster import default_workers, options_for

    for amount, expected in ((1, 4), (0.1, 40), (2.5, 1), (9, 1)):
        options = options_for({"num_cpus": 0, "resources": {"far": amount}})
        assert default_workers(options, -inf) == expected
    assert default_workers({"num_cpus": 0}, -inf) == 1


@pytest.mark.usefixtures("connected")
def test_resources_of_actors_that_were_ended_count_as_free() -> None:
    from sb3compat._parallel.ray_actors import Actors
    from sb3compat._parallel.ray_cluster import default_workers, options_for

    wanted = {"num_cpus": 0, "resources": {"far": 1}}
    on_ray(known(), 2, actor_options=wanted).close()
    assert default_workers(options_for(wanted), Actors.ended_at) == 4


class Inside:
    """What an actor in a placement group finds."""

    def made(self, workers: int | None, schedule_timeout: float, options: Any) -> str | int:
        """The number of actors, negative outside of the group; or the error."""
        group = ray.util.get_current_placement_group()
        kwargs = {"schedule_timeout": schedule_timeout, "actor_options": options}
        try:
            env = on_ray(known(), workers, **kwargs)  # type: ignore[arg-type]
        except (sb3compat.WorkerError, ValueError) as error:
            return str(error)
        found = env.env_method("group")
        env.close()
        count = len(env.rows_of_worker)
        return count if set(found) == {group.id.hex()} else -count


@pytest.mark.usefixtures("connected")
def test_actors_in_a_placement_group_find_their_bundles() -> None:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as In

    def inside(capture: bool) -> Any:
        return ray.remote(Inside).options(num_cpus=1, scheduling_strategy=In(group, 0, capture))

    def made(workers: int | None, seconds: float = 60, **options: Any) -> Any:
        return ray.get(actor.made.remote(workers, seconds, options), timeout=120)

    group = ray.util.placement_group([{"CPU": 1}] * 2)
    far = {"num_cpus": 0, "resources": {"far": 2}}
    try:
        actor = inside(capture=True).remote()
        for options in ({}, {"scheduling_strategy": In(group, 1)}):
            assert "Expected workers to be given" in made(None, **options)
            assert made(1, **options) == 1
        error = made(2, 1.0)
        for part in (
            "Expected 2 Ray actors with CPU: 1 each to start, but ",
            " did not within schedule_timeout=1.0 seconds. ",
            f"They go to placement group {group.id.hex()}, whose bundles are [CPU: 1], [CPU: 1];",
            "tune.PlacementGroupFactory([{'CPU': 1}] + [{'CPU': 1}] * 2)",
            "actor_options={'scheduling_strategy': 'DEFAULT'}",
        ):
            assert part in error
        # How many depends on how soon Ray counts what the last ones have freed.
        for strategy in ("DEFAULT", In(None)):
            assert made(None, **far, scheduling_strategy=strategy) in (-1, -2)
        ray.kill(actor)
        actor = inside(capture=False).remote()
        assert made(None, **far) in (-1, -2)
    finally:
        ray.util.remove_placement_group(group)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"max_restarts": 1}, "unlike with on_worker_lost='restart'"),
        ({"lifetime": "detached"}, "end with the environment"),
        ({"name": "workers"}, "an actor of its own"),
        ({"max_concurrency": 2}, "one command at a time"),
        # Told by Ray, before they are counted.
        ({"num_cpus": "2"}, "keyword 'num_cpus'"),
        ({"memory": "1GB"}, "keyword 'memory'"),
        ({"resources": 3}, "keyword 'resources'"),
    ],
)
def test_options_that_are_wrong_or_would_break_the_contract_are_refused(
    options: dict[str, Any], what: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=what):
        ParallelVecEnv(known(), backend="ray", actor_options=options)


@pytest.mark.parametrize(("policy", "anew"), [("raise", False), ("raise", True), ("restart", True)])
def test_ray_that_was_shut_down_does_not_know_the_actors(
    policy: str, anew: bool, connected: Any
) -> None:
    env = opened(known(), 1, on_ray, on_worker_lost=policy)
    actors = processes_of(env)
    env.step_async(ACTIONS)
    ray.shutdown()
    if anew:
        ray.init(address=connected.address, log_to_driver=False, logging_level="ERROR")
    if policy == "restart":
        assert env.step_wait()[2].all()
        assert not env.step(ACTIONS)[2].any()
    else:
        uses = (env.step_wait, lambda: env.step(ACTIONS), env.reset, lambda: env.get_attr("row"))
        for use in uses:
            with pytest.raises(sb3compat.WorkerError, match="Ray has been shut down"):
                use()
    env.close()
    assert ray.is_initialized() == anew
    assert all(actor.has_ended() for actor in actors)
