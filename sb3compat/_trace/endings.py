"""Step an environment, and record the calls around the ends of its episodes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from sb3compat._convert.types import Action
from sb3compat._trace.presented import Presented
from sb3compat._trace.record import Call, Ending


class _Row:
    """The actions of one row, and the ends of its episodes so far."""

    def __init__(self, row: int, first: Call, space: Any, seed: int, calls_after: int) -> None:
        self.endings: list[Ending] = []
        self._row = row
        self._before = first
        # The call before, that of the ending, and those after it.
        self._enough = 2 + calls_after
        self._length = 0
        self._space = deepcopy(space)
        self._space.seed(seed)
        self.action: Action = self._space.sample()

    def note(self, call: Call) -> None:
        """Record a call; only calls around an ending are kept."""
        for ending in self.endings:
            if len(ending.calls) < self._enough:
                ending.calls.append(call)
        if call.acted:
            self._length += 1
            self.action = self._space.sample()
        if call.ended:
            number = len(self.endings) + 1
            self.endings.append(Ending(self._row, number, self._length, [self._before, call]))
            self._length = 0
        self._before = call

    def has(self, episodes: int) -> bool:
        """Whether as many endings are complete."""
        return len(self.endings) >= episodes and (
            len(self.endings[episodes - 1].calls) == self._enough
        )


def endings_of(
    env: Presented, rows: Sequence[int], *, episodes: int, seed: int, max_steps: int
) -> list[Ending]:
    """The ends of episodes in some rows.

    Every row has its own sequence of actions, and takes its k-th action in its k-th transition. So
    each API returns the same transitions, even if some need additional steps for resets.

    Args:
        env: The environment.
        rows: The rows to note.
        episodes: How many episodes of each row to note.
        seed: The seed of the environment and of the actions.
        max_steps: After how many steps to stop, whether or not all episodes have ended.
    """
    state = [
        _Row(i, call, env.action_space, seed + i, env.calls_after)
        for i, call in enumerate(env.reset(seed))
    ]
    for number in range(1, max_steps + 1):
        stepped = env.step([row.action for row in state], number)
        for row, calls in zip(state, stepped, strict=True):
            for call in calls:
                row.note(call)
        if all(state[i].has(episodes) for i in rows):
            break
    return [ending for i in rows for ending in state[i].endings[:episodes]]
