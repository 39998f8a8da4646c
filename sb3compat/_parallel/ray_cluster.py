"""The resources that are requested from a Ray cluster, and those that it has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from sb3compat._parallel.serve import RowsActor
from sb3compat.errors import WorkerError

# Each actor has a core to itself. Ray's own default is 1 to find a place and 0 from then on.
_DEFAULTS = {"num_cpus": 1}
# How long Ray may take to say that the resources of an ended actor are free: a second or two.
_RELEASE_SECONDS = 4.0
# Options with which an actor might answer a command twice, or outlive its parent.
_NOT_ALLOWED = {
    "allow_out_of_order_execution": "commands are answered in their order",
    "concurrency_groups": "an actor runs one command at a time",
    "get_if_exists": "each worker is an actor of its own",
    "lifetime": "the actors end with the environment",
    "max_concurrency": "an actor runs one command at a time",
    "max_restarts": "a restarted actor has lost its rows, unlike with on_worker_lost='restart'",
    "max_task_retries": "a step is not repeated",
    "name": "each worker is an actor of its own",
    "placement_group": "Ray has replaced it by scheduling_strategy",
    "placement_group_bundle_index": "Ray has replaced it by scheduling_strategy",
    "placement_group_capture_child_tasks": "Ray has replaced it by scheduling_strategy",
}


def options_for(actor_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """What `ray.remote(...).options` takes.

    Raises:
        ValueError: If an option is not allowed here, or by Ray.
        TypeError: If Ray does not take a value of this type.
    """
    options = _DEFAULTS | dict(actor_options or {})
    for name in options.keys() & _NOT_ALLOWED.keys():
        raise ValueError(
            f"Expected actor_options without {name!r}, got {name}={options[name]!r}: "
            f"{_NOT_ALLOWED[name]}. Leave it out."
        )
    ray.remote(RowsActor).options(**options)  # Ray's own checks
    return options


def connect() -> None:
    """Use Ray as it is initialised; initialise it as Ray does by itself if it is not.

    `ray.init()` joins the cluster that the environment variable `RAY_ADDRESS` or `ray start` on
    this machine names, and starts one on this machine where there is none.
    """
    if not ray.is_initialized():
        ray.init()


def session() -> tuple[str, str] | None:
    """What differs after each initialisation of Ray; None without one.

    The numbers of jobs, and with them those of processes, begin again in each cluster.
    """
    if not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context.get_node_id(), context.get_worker_id()


def default_workers(options: Mapping[str, Any], ended_at: float) -> int:
    """As many actors as the free resources of the cluster allow.

    Args:
        options: The options of each.
        ended_at: When actors were ended last, by `time.monotonic`. Ray says only some time later
            that their resources are free, for which this waits.

    Raises:
        ValueError: If they go to a placement group, of which this process may take a part itself.
    """
    connect()
    group = group_of(options)
    if group is not None:
        raise ValueError(
            f"Expected workers to be given where actors go to {_named(group)}, as in a trial of "
            f"Ray Tune, got workers=None. It has {len(group.bundle_specs)} bundles, of which this "
            "process may occupy one; pass workers=, one for each other bundle. Or place the actors "
            "outside of it: actor_options={'scheduling_strategy': 'DEFAULT'}."
        )
    wanted = _wanted(options)
    while time.monotonic() < ended_at + _RELEASE_SECONDS:
        if _fitting(wanted, ray.available_resources()) == _fitting(wanted, ray.cluster_resources()):
            break
        time.sleep(0.05)
    return max(1, _fitting(wanted, ray.available_resources()))


def _fitting(wanted: Mapping[str, float], resources: Mapping[str, float]) -> int:
    fits = [resources.get(name, 0) / amount for name, amount in wanted.items()]
    # Ray counts in ten-thousandths.
    return int(min(fits, default=1) + 1e-4)


def group_of(options: Mapping[str, Any]) -> Any:
    """The placement group that actors with these options go to; None if there is none.

    Without a `scheduling_strategy`, Ray places them in the group of this process if that captures
    what its processes start. All strategies that name no group, such as `"DEFAULT"`, leave it.
    """
    strategy, group = options.get("scheduling_strategy"), None
    if isinstance(strategy, PlacementGroupSchedulingStrategy):
        group = strategy.placement_group
    elif strategy is None:
        captures = ray.get_runtime_context().should_capture_child_tasks_in_placement_group
        group = ray.util.get_current_placement_group() if captures else None
    return None if group is None or group.is_empty else group


def not_started(missing: int, count: int, options: Mapping[str, Any], why: str) -> WorkerError:
    """The error if actors could not be scheduled, with the requested and available resources.

    Args:
        missing: How many could not be scheduled.
        count: How many there are.
        options: The options of each.
        why: What they did not do.
    """
    group = group_of(options)
    way_out = _of_cluster() if group is None else _of_group(group, count, options)
    return WorkerError(
        f"Expected {count} Ray actor{'s' * (count > 1)} with {_asked_for(options)} each to start, "
        f"but {missing} did not {why}. {way_out}"
    )


def _of_cluster() -> str:
    return (
        f"The cluster has {_shown(ray.cluster_resources())}, of which "
        f"{_shown(ray.available_resources())} are free. Use fewer workers, ask for less in "
        "actor_options, or add machines; a larger schedule_timeout gives time to a cluster that "
        "grows."
    )


def _of_group(group: Any, count: int, options: Mapping[str, Any]) -> str:
    bundles = "], [".join(map(_shown, group.bundle_specs))
    return (
        f"They go to {_named(group)}, whose bundles are [{bundles}]; this process may take one of "
        "them itself. A placement group does not grow. Reserve a bundle for each worker, in Ray "
        "Tune by tune.with_resources(train, tune.PlacementGroupFactory("
        f"[{{'CPU': 1}}] + [{_wanted(options)}] * {count})); or place the actors outside, where "
        "the cluster has room: actor_options={'scheduling_strategy': 'DEFAULT'}."
    )


def _named(group: Any) -> str:
    return f"placement group {group.id.hex()}"


def _wanted(options: Mapping[str, Any]) -> Mapping[str, float]:
    """The resources that an actor occupies while it lives."""
    wanted = {"CPU": options["num_cpus"], "GPU": options.get("num_gpus")}
    wanted |= {"memory": options.get("memory"), **(options.get("resources") or {})}
    return {name: amount for name, amount in wanted.items() if amount}


def _asked_for(options: Mapping[str, Any]) -> str:
    places = {
        name: options[name]
        for name in ("scheduling_strategy", "label_selector", "accelerator_type")
        if options.get(name) is not None
    }
    return _shown(_wanted(options)) + "".join(
        f", {name}={value!r}" for name, value in places.items()
    )


def _shown(resources: Mapping[str, float]) -> str:
    texts = [
        f"{name}: {amount / 1e9:.1f} GB" if name == "memory" else f"{name}: {amount:g}"
        for name, amount in sorted(resources.items())
        # Ray adds a resource for each node.
        if name != "object_store_memory" and not name.startswith("node:")
    ]
    return ", ".join(texts) or "nothing"
