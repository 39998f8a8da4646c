"""What a Ray cluster is asked for, and what it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray

from sb3compat._parallel.ray_groups import Group, Resources, group_of, room
from sb3compat.errors import WorkerError

# Each actor has a core to itself. Ray's own default is 1 to find a place and 0 from then on.
_DEFAULTS = {"num_cpus": 1}
# What would break the promise that one actor answers each command once, and ends with its parent.
_NOT_ALLOWED = {
    "allow_out_of_order_execution": "commands are answered in their order",
    "concurrency_groups": "an actor runs one command at a time",
    "get_if_exists": "each worker is an actor of its own",
    "lifetime": "the actors end with the environment",
    "max_concurrency": "an actor runs one command at a time",
    "max_restarts": "an actor that Ray restarts has lost its rows; use on_worker_lost='restart'",
    "max_task_retries": "a step is not repeated",
    "name": "each worker is an actor of its own",
    "placement_group": "Ray has replaced it; use scheduling_strategy",
    "placement_group_bundle_index": "Ray has replaced it; use scheduling_strategy",
    "placement_group_capture_child_tasks": "Ray has replaced it; use scheduling_strategy",
}


def options_for(actor_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """What `ray.remote(...).options` takes.

    Raises:
        ValueError: If an option is not allowed here.
    """
    options = _DEFAULTS | dict(actor_options or {})
    for name in options.keys() & _NOT_ALLOWED.keys():
        raise ValueError(
            f"Expected actor_options without {name!r}, got {name}={options[name]!r}: "
            f"{_NOT_ALLOWED[name]}."
        )
    return options


def connect() -> None:
    """Use Ray as it is initialised; initialise it as Ray does by itself if it is not.

    `ray.init()` joins the cluster that the environment variable `RAY_ADDRESS` or `ray start` on
    this machine names, and starts one on this machine where there is none.
    """
    if not ray.is_initialized():
        ray.init()


def default_workers(options: Mapping[str, Any]) -> int:
    """As many actors as what is free has room for, in their placement group or the cluster."""
    connect()
    wanted = _wanted(options)
    if not wanted:
        return 1
    group = group_of(options)
    if group is None:
        return max(1, room(wanted, [ray.available_resources()]))
    # Ray may not have counted this process yet.
    return max(1, min(room(wanted, group.free()), group.room(wanted)))


def check_room(count: int, options: Mapping[str, Any]) -> None:
    """Refuse actors that their placement group can never hold, instead of waiting for a place.

    Raises:
        WorkerError: If there are too many.
    """
    wanted, group = _wanted(options), group_of(options)
    if wanted and group is not None and group.room(wanted) < count:
        fit = group.room(wanted)
        raise _no_place(
            count, options, group, f"there is room for {fit} only" if fit else "none fits"
        )


def not_started(missing: int, count: int, options: Mapping[str, Any], why: str) -> WorkerError:
    """The error where actors could not be scheduled; it says what they need and what there is."""
    return _no_place(count, options, group_of(options), f"{missing} did not {why}")


def _no_place(
    count: int, options: Mapping[str, Any], group: Group | None, what: str
) -> WorkerError:
    many = f"Expected {count} Ray actor{'s' * (count > 1)} with {_asked_for(options)} each to start"
    way_out = _of_cluster() if group is None else _of_group(group, count, options)
    return WorkerError(f"{many}, but {what}. {way_out}")


def _of_cluster() -> str:
    return (
        f"The cluster has {_shown(ray.cluster_resources())}, of which "
        f"{_shown(ray.available_resources())} are free. Use fewer workers, ask for less in "
        "actor_options, or add machines; a larger schedule_timeout gives time to a cluster that "
        "grows."
    )


def _of_group(group: Group, count: int, options: Mapping[str, Any]) -> str:
    wanted = _wanted(options)
    own = f", of which this process holds {_shown(group.held)}" if group.held else ""
    return (
        f"They go to {group.name}, whose bundles are {_listed(group.bundles)}{own}. A placement "
        "group does not grow. Reserve a bundle for each worker, in Ray Tune by "
        "tune.with_resources(train, tune.PlacementGroupFactory("
        f"[{{'CPU': 1}}] + [{wanted}] * {count})); or place the actors outside, where the cluster "
        "has room: actor_options={'scheduling_strategy': 'DEFAULT'}."
    )


def _wanted(options: Mapping[str, Any]) -> Resources:
    """What an actor takes as long as it lives."""
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


def _listed(bundles: Sequence[Resources]) -> str:
    return "[" + "], [".join(map(_shown, bundles)) + "]"


def _shown(resources: Resources) -> str:
    texts = [
        f"{name}: {amount / 1e9:.1f} GB" if name == "memory" else f"{name}: {amount:g}"
        for name, amount in sorted(resources.items())
        # Ray adds a resource for each node.
        if name != "object_store_memory" and not name.startswith("node:")
    ]
    return ", ".join(texts) or "nothing"
