from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.covering import Pair, chosen, covering
from tests.profiles import VARIABLE

NAMES = st.sampled_from("abcdef")
PAIRS = st.lists(st.tuples(NAMES, NAMES), max_size=40)


@given(pairs=PAIRS, seed=st.integers(0, 9))
def test_each_name_is_chosen_in_every_place_of_a_pair(pairs: list[Pair], seed: int) -> None:
    chosen = covering(pairs, seed)
    assert set(chosen) <= set(pairs)
    assert {first for first, _ in chosen} == {first for first, _ in pairs}
    assert {second for _, second in chosen} == {second for _, second in pairs}


@given(pairs=PAIRS, seed=st.integers(0, 9))
def test_no_pair_could_be_left_out_when_it_was_chosen(pairs: list[Pair], seed: int) -> None:
    chosen = covering(pairs, seed)
    assert len(set(chosen)) == len(chosen)
    for number, (first, second) in enumerate(chosen):
        before = chosen[:number]
        assert first not in {a for a, _ in before} or second not in {b for _, b in before}


def test_all_pairs_of_some_names_need_little_more_than_one_for_each_name() -> None:
    names = [f"name {number}" for number in range(20)]
    every = [(a, b) for a in names for b in names]
    assert all(20 <= len(covering(every, seed)) <= 24 for seed in range(20))


def test_the_choice_depends_on_the_seed_and_not_on_the_order() -> None:
    every = [(a, b) for a in "abcdef" for b in "abcdef"]
    assert covering(every, 1) == covering(every[::-1], 1)
    assert covering(every, 1) != covering(every, 2)


@pytest.mark.parametrize("profile", ["dev", "ci", "nightly"])
def test_all_of_them_nightly(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, profile)
    every = [(a, b) for a in "ba" for b in "dc"]
    assert chosen(every, 1) == (sorted(every) if profile == "nightly" else covering(every, 1))
