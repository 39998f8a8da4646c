"""Single actions, and source for batches of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate

from sb3compat.conformance.program.script import PRELUDE
from sb3compat.conformance.subject.actions import (
    batch_source,
    candidates,
    policies,
    sample_source,
)
from sb3compat.conformance.subject.examine import examine
from tests.conformance.tiny import TinyVecEnv


@pytest.mark.parametrize(
    ("space", "first", "last"),
    [
        (spaces.MultiDiscrete([3, 2]), [0, 0], [2, 1]),
        (spaces.MultiDiscrete([3, 2], start=[1, -1]), [1, -1], [3, 0]),
        (spaces.MultiBinary(2), [0, 0], [1, 1]),
        (spaces.Discrete(4, start=2), 2, 5),
        (spaces.Box(-2, np.inf, (1,), np.float64), [0], [-2]),
    ],
)
def test_the_simplest_action_comes_first_and_extreme_ones_next(
    space: Any, first: Any, last: Any
) -> None:
    known = candidates(space)
    assert [action.tolist() for action in known[:2]] == [first, last]
    assert all(space.contains(action) for action in known)


def test_a_batch_of_dicts_is_a_list_for_a_vec_env_and_a_dict_for_a_vector_env() -> None:
    actions = [{"a": np.int64(1)}, {"a": np.int64(2)}]
    names = {"np": np}
    subject = examine(TinyVecEnv, seconds=None)
    listed = replace(subject, action_space=spaces.Dict(a=spaces.Discrete(3)))
    assert eval(batch_source(listed, actions), names) == [{"a": 1}, {"a": 2}]
    batch = eval(batch_source(replace(listed, family="vector_env"), actions), names)
    assert batch["a"].tolist() == [1, 2]
    assert batch["a"].dtype == np.int64


def test_each_of_a_few_actions_is_a_policy_and_so_are_samples() -> None:
    subject = examine(TinyVecEnv, seconds=None)
    found = policies(subject)
    assert [actions for _, actions in found[:-1]] == [
        "np.full((2,), 0, np.int64)",
        "np.full((2,), 1, np.int64)",
    ]
    setup, sample = found[-1]
    names = {"np": np, "env": TinyVecEnv(), **PRELUDE}
    exec(setup, names)
    first = [eval(sample, names).tolist() for _ in range(8)]
    exec(setup, names)
    assert [eval(sample, names).tolist() for _ in range(8)] == first
    assert sample == sample_source(subject)


@pytest.mark.parametrize(
    "space", [spaces.Tuple([spaces.Discrete(3)] * 2), spaces.Dict(a=spaces.Discrete(3))]
)
def test_samples_that_have_parts_are_a_list_for_a_vec_env(space: Any) -> None:
    subject = replace(
        examine(TinyVecEnv, seconds=None),
        action_space=space,
        actions=tuple(candidates(space)),
    )
    env = SimpleNamespace(action_space=space)
    batch = eval(sample_source(subject), {"np": np, "env": env})
    assert isinstance(batch, list)
    assert all(space.contains(action) for action in batch)


@pytest.mark.parametrize(
    "space",
    [
        spaces.OneOf([spaces.Discrete(3), spaces.Box(0, 1, (1,))]),
        spaces.Sequence(spaces.Discrete(3)),
        spaces.Text(3),
        spaces.Dict(
            a=spaces.Sequence(spaces.Discrete(3)),
            b=spaces.Tuple([spaces.Dict(c=spaces.Text(2)), spaces.Box(0, 1, (1,))]),
        ),
    ],
)
def test_a_batch_for_a_vector_env_has_each_row_s_action(space: Any) -> None:
    subject = replace(examine(TinyVecEnv, seconds=None), family="vector_env", action_space=space)
    actions = candidates(space)
    batch = eval(batch_source(subject, actions), {"np": np})
    assert batch_space(space, len(actions)).contains(batch)
    assert PRELUDE["equal"](list(iterate(batch_space(space, len(actions)), batch)), actions)
