"""Hypothesis strategies: spaces, scripts and programs, biased towards where things break."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st

from tests.envs import ENDINGS, GYMNASIUM, Script

_DTYPES: list[Any] = [
    # Before Gymnasium 1.4, shared memory knows no float16.
    *([np.float16] if GYMNASIUM >= (1, 4) else []),
    np.float32, np.float64, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32,
]  # fmt: skip


def boxes() -> st.SearchStrategy[spaces.Space[Any]]:
    return st.builds(
        lambda dtype, shape: spaces.Box(0, 100, shape, dtype),
        st.sampled_from(_DTYPES),
        st.sampled_from([(), (1,), (3,), (2, 2), (2, 3, 1)]),
    )


def leaves() -> st.SearchStrategy[spaces.Space[Any]]:
    return st.one_of(
        boxes(),
        st.builds(spaces.Discrete, st.integers(2, 5), start=st.sampled_from([0, 0, -2, 3])),
        st.sampled_from(
            [
                spaces.MultiDiscrete([3, 4]),
                spaces.MultiDiscrete([3, 4], start=[2, 0]),
                spaces.MultiDiscrete([[2, 3], [4, 5]]),
                spaces.MultiBinary(3),
                spaces.MultiBinary((2, 2)),
            ]
        ),
    )


def any_space(fewest: int = 1) -> st.SearchStrategy[spaces.Space[Any]]:
    """Any space; a Dict or Tuple has at least so many parts."""
    return st.one_of(
        leaves(),
        st.lists(leaves(), min_size=fewest, max_size=3).map(
            lambda parts: spaces.Dict({f"part{i}": part for i, part in enumerate(parts)})
        ),
        st.lists(leaves(), min_size=fewest, max_size=3).map(spaces.Tuple),
    )


def scripts(
    infos: tuple[str, ...] = ("none", "plain", "wild"), reuse: bool = True, shared: bool = False
) -> st.SearchStrategy[Script]:
    return st.builds(
        Script,
        any_space(fewest=0),
        any_space(),  # Gymnasium itself cannot step with empty actions
        lengths=st.one_of(
            st.sampled_from([(1,), (2,)]),  # every step, and all rows together
            st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
        ),
        endings=st.lists(st.sampled_from(ENDINGS), min_size=1, max_size=3).map(tuple),
        infos=st.sampled_from(infos),
        reuse=st.booleans() if reuse else st.just(False),
        shared=st.booleans() if shared else st.just(False),
    )


def programs(num_envs: int, max_size: int = 16) -> st.SearchStrategy[list[tuple[str, Any]]]:
    option = st.one_of(
        st.just({}), st.fixed_dictionaries({"x": st.integers(0, 3)}), st.just({"x": 1, "y": [1, 2]})
    )
    rare = st.one_of(
        st.just(("reset", None)),
        st.tuples(st.just("seed"), st.one_of(st.none(), st.integers(0, 1000))),
        st.tuples(
            st.just("options"),
            st.one_of(
                st.none(),
                option,
                st.lists(st.one_of(option, st.none()), min_size=num_envs, max_size=num_envs),
            ),
        ),
    )
    step = st.tuples(st.just("step"), st.integers(0, 999))
    start = st.lists(rare, max_size=2).map(lambda some: [*some, ("reset", None)])
    rest = st.lists(st.one_of(step, step, step, rare), max_size=max_size)
    return st.builds(lambda a, b: a + b, start, rest)
