"""The placement group that Ray actors go to, as those of a trial of Ray Tune do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

Resources = Mapping[str, float]


class Group:
    """A placement group, as actors with some options find it. Its size is fixed.

    Args:
        group: The placement group.
        index: The number of the bundle that the options name; -1 if any will do.

    Attributes:
        name: What to call it in a message.
        bundles: What each bundle has reserved.
        held: What this process takes of one of them, as long as it lives.
    """

    def __init__(self, group: Any, index: int) -> None:
        self._id = group.id.hex()
        self._index = index
        self.name = f"{'' if index == -1 else f'bundle {index} of '}placement group {self._id}"
        self.bundles: list[Resources] = group.bundle_specs
        self.held: Resources = {}
        context = ray.get_runtime_context()
        # A task gives its processors back while it waits; an actor keeps them.
        if ray.util.get_current_placement_group() == group and context.get_actor_id():
            self.held = context.get_assigned_resources()

    def free(self) -> list[Resources]:
        """What was free in each bundle when Ray counted last, some tenths of a second ago."""
        found = ray.available_resources()
        return self._chosen([
            {name: found.get(f"{name}_group_{number}_{self._id}", 0) for name in bundle}
            for number, bundle in enumerate(self.bundles)
        ])  # fmt: skip

    def room(self, wanted: Resources) -> int:
        """How many actors fit in beside this process, if there is nothing else."""
        return max(room(wanted, self._chosen(left)) for left in self._left())

    def _left(self) -> list[list[Resources]]:
        """What this process leaves of the bundles, for each of them that may be its own."""
        ways = []
        for own, bundle in enumerate(self.bundles):
            left = {name: amount - self.held.get(name, 0) for name, amount in bundle.items()}
            if bundle.keys() >= self.held.keys() and min(left.values()) >= 0:
                ways.append([*self.bundles[:own], left, *self.bundles[own + 1 :]])
        return ways or [self.bundles]

    def _chosen(self, bundles: list[Resources]) -> list[Resources]:
        return [each for number, each in enumerate(bundles) if self._index in (-1, number)]


def group_of(options: Mapping[str, Any]) -> Group | None:
    """The placement group that actors with these options go to, if there is one.

    Without a `scheduling_strategy`, Ray places them in the group of this process if that captures
    what its processes start. All strategies that name no group, such as `"DEFAULT"`, leave it.
    """
    strategy = options.get("scheduling_strategy")
    group, index = None, -1
    if isinstance(strategy, PlacementGroupSchedulingStrategy):
        group, index = strategy.placement_group, strategy.placement_group_bundle_index
    elif strategy is None:
        captures = ray.get_runtime_context().should_capture_child_tasks_in_placement_group
        group = ray.util.get_current_placement_group() if captures else None
    return None if group is None or group.is_empty else Group(group, index)


def room(wanted: Resources, places: Sequence[Resources]) -> int:
    """How many actors that want so much each fit into some places, each into one of them."""
    return sum(
        # Ray counts in ten-thousandths.
        int(min(place.get(name, 0) / amount for name, amount in wanted.items()) + 1e-4)
        for place in places
    )
