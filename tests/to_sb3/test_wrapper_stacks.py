"""Pairs and stacks of Gymnasium's vector wrappers: exact, as each of them alone."""

from __future__ import annotations

from functools import cache

import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.covering import Pair, chosen
from tests.envs import GYMNASIUM
from tests.profiles import examples
from tests.strategies import programs
from tests.to_sb3.wrapper_twins import (
    MODES,
    TWINS,
    fitting_space,
    in_lockstep,
    mode_of,
    refused_by_gymnasium,
    refused_here,
    sync,
)

pytest.importorskip("stable_baselines3", reason="the yardstick is SB3's DummyVecEnv")
pytest.importorskip("pygame", reason="HumanRendering shows its frames with pygame")
pytest.importorskip("cv2", reason="ResizeObservation and HumanRendering need OpenCV")

if GYMNASIUM < (1, 4):
    # A RecordVideo that refuses its environment raises again when it is deleted.
    pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def allowed(mode: AutoresetMode) -> list[str]:
    """The wrappers that work in this mode."""
    return [
        name for name in TWINS if not (refused_by_gymnasium(name, mode) or refused_here(name, mode))
    ]


@cache
def possible_pairs(mode: AutoresetMode) -> list[Pair]:
    """The inner and the outer wrapper, where Gymnasium itself can run one in the other."""
    names = allowed(mode)
    return [(a, b) for b in names for a in names if fitting_space(a, b) is not None]


@cache
def tried_pairs(mode: AutoresetMode) -> list[Pair]:
    """All of them nightly; else some, others in each mode."""
    return chosen(possible_pairs(mode), seed=MODES.index(mode))


@mode_of
def test_every_wrapper_is_tried_inside_and_outside(mode: AutoresetMode) -> None:
    inner, outer = zip(*tried_pairs(mode), strict=True)
    assert set(inner) == set(outer) == set(allowed(mode))


@mode_of
@pytest.mark.parametrize("outer", TWINS)
def test_pairs_of_wrappers_are_exact(outer: str, mode: AutoresetMode) -> None:
    if outer not in allowed(mode):
        return  # see test_wrapper_is_exact_or_refused
    assert sum(b == outer for _, b in possible_pairs(mode)) > 5
    for names in tried_pairs(mode):
        if names[1] == outer:
            in_lockstep(names, sync, mode=mode)


@mode_of
@given(data=st.data(), n=st.integers(1, 4), copy=st.booleans())
@settings(max_examples=examples(60))
def test_stacks_of_wrappers_are_exact(
    mode: AutoresetMode, data: st.DataObject, n: int, copy: bool
) -> None:
    some_names = st.lists(st.sampled_from(allowed(mode)), min_size=1, max_size=4)
    names = tuple(data.draw(some_names))
    assume(fitting_space(*names) is not None)
    program = data.draw(programs(n, max_size=10))
    in_lockstep(names, sync, n, program=program, mode=mode, copy=copy)
