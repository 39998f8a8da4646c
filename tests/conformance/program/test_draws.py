"""What a scenario draws: new numbers as long as there are any, and simpler ones on demand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sb3compat.conformance.program.draws import Draws

# The size of the next number, by those before; 0 where a scenario ends.
Tree = Callable[[tuple[int, ...]], int]


def made(draws: Draws, size_after: Tree) -> tuple[int, ...]:
    while size := size_after(tuple(draws.made)):
        draws.number(size)
    return tuple(draws.made)


def all_of(size_after: Tree, begin: tuple[int, ...] = ()) -> set[tuple[int, ...]]:
    size = size_after(begin)
    return set().union(*(all_of(size_after, (*begin, k)) for k in range(size))) if size else {begin}


@given(st.integers(0, 1000), st.lists(st.integers(1, 3), max_size=3))
def test_all_numbers_are_drawn_once_and_then_the_beginning_is_done(
    seed: int, sizes: list[int]
) -> None:
    def size_after(before: tuple[int, ...]) -> int:
        """A tree that is deeper after some numbers than after others."""
        longer = [*sizes, *([2] if sum(before) % 2 else [])]
        return longer[len(before)] if len(before) < len(longer) else 0

    expected = all_of(size_after)
    done: set[tuple[int, ...]] = set()
    found = []
    for number in count():
        if () in done:
            break
        draws = Draws(random=Random(seed + number) if number else None, done=done)
        found.append(made(draws, size_after))
        draws.end(done)
    assert found[0] == min(expected)  # nothing but the simplest
    assert sorted(found) == sorted(expected)


def test_known_numbers_come_first_and_fit_their_size() -> None:
    draws = Draws([2, 5], Random(0))
    assert [draws.number(4), draws.number(3)] == [2, 2]
    assert {Draws([1], Random(k)).number(9) for k in range(9)} == {1}
    assert (
        len({tuple(made(Draws([1], Random(k)), lambda b: 9 * (len(b) < 2))) for k in range(9)}) > 1
    )
    assert Draws([1]).number(2) + Draws().number(2) == 1  # 0 without a generator
