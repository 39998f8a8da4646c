"""What a scenario draws."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


class Draws:
    """What a scenario draws, as numbers: 0 is the simplest of each.

    Args:
        known: The first numbers.
        random: Draws the others; they are 0 without it.
        done: The beginnings after which there is nothing new to draw.
    """

    def __init__(
        self,
        known: Sequence[int] = (),
        random: Random | None = None,
        done: frozenset[tuple[int, ...]] | set[tuple[int, ...]] = frozenset(),
    ) -> None:
        self.made: list[int] = []
        self._sizes: list[int] = []
        self._known, self._random, self._done = known, random, done

    def number(self, size: int) -> int:
        """A number below `size`."""
        place = len(self.made)
        chosen = min(self._known[place], size - 1) if place < len(self._known) else 0
        if self._random is not None and place >= len(self._known):
            new = [k for k in range(size) if (*self.made, k) not in self._done]
            chosen = self._random.choice(new or range(size))
        self.made.append(chosen)
        self._sizes.append(size)
        return chosen

    def end(self, done: set[tuple[int, ...]]) -> None:
        """Note that these numbers were drawn, and the beginnings after which all were."""
        made = tuple(self.made)
        done.add(made)
        for place in reversed(range(len(made))):
            if any((*made[:place], k) not in done for k in range(self._sizes[place])):
                return
            done.add(made[:place])
