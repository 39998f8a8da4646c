"""A few pairs stand for all of them, except nightly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import Pair, chosen, covering
from tests.profiles import VARIABLE

NAMES = st.sampled_from("abcdef")


@given(pairs=st.lists(st.tuples(NAMES, NAMES), max_size=40), seed=st.integers(0, 9))
def test_each_name_is_chosen_in_every_place_of_a_pair(pairs: list[Pair], seed: int) -> None:
    found = covering(pairs, seed)
    assert set(found) <= set(pairs)
    assert {first for first, _ in found} == {first for first, _ in pairs}
    assert {second for _, second in found} == {second for _, second in pairs}


@pytest.mark.parametrize("profile", ["ci", "nightly"])
def test_all_of_them_nightly(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, profile)
    every = [(a, b) for a in "ba" for b in "dc"]
    assert chosen(every, 1) == (sorted(every) if profile == "nightly" else covering(every, 1))
