"""What the tap below the wrappers hands on, and what it notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv, VectorWrapper

import sb3compat
from sb3compat._to_sb3.tap import MaskOptions, Tap
from tests.envs import GYMNASIUM, Identity, MakeEnv, fns, script
from tests.lockstep import same

ACTIONS = np.zeros(2, np.int64)


def test_mask_stays_where_a_wrapper_pops_it() -> None:
    options = MaskOptions(reset_mask=[True], x=1)
    assert [options.pop("reset_mask"), options.pop("reset_mask", None)] == [[True], [True]]
    assert [options.pop("x"), options.pop("x", 2), options.pop("y", 3)] == [1, 2, 3]
    assert MaskOptions().pop("reset_mask", None) is None


class FailsOnce(VectorWrapper):
    fails = True

    def reset(self, **kwargs: Any) -> Any:
        if self.fails:
            raise ValueError("no reset")
        return self.env.reset(**kwargs)


def test_after_a_reset_that_raised_the_users_own_resets_go_straight_to_the_environment() -> None:
    source = FailsOnce(SyncVectorEnv(fns(2)))
    env = sb3compat.to_sb3(source)
    with pytest.raises(ValueError, match="no reset"):
        env.reset()
    source.fails = False
    source.reset(options={"x": 1})
    # Gymnasium's own reset has passed the options; the adapter's would have passed none.
    assert source.env.resets == 1


def test_two_adapters_over_one_environment_share_the_tap() -> None:
    source = VectorWrapper(SyncVectorEnv(fns(2, lengths=(2, 3))))
    first, plain = sb3compat.to_sb3(source), sb3compat.to_sb3(SyncVectorEnv(fns(2, lengths=(2, 3))))
    tap = source.env
    second = sb3compat.to_sb3(source)
    assert isinstance(tap, Tap)
    assert source.env is tap
    for env in (first, second, first):
        for either in (env, plain):
            either.seed(3)
        same(env.reset(), plain.reset())
        for _ in range(4):
            same(env.step(ACTIONS), plain.step(ACTIONS))


def test_calls_of_the_user_pass_the_tap_unchanged() -> None:
    wrapped, plain = (Identity(SyncVectorEnv(fns(2))) for _ in range(2))
    sb3compat.to_sb3(wrapped)
    mask = np.array([True, False])
    for kwargs in ({"seed": 3}, {"seed": [4, 5], "options": {"x": 2}}, {}):
        same(wrapped.reset(**kwargs), plain.reset(**kwargs))
        same(wrapped.step(ACTIONS), plain.step(ACTIONS))
    for seed in (None, 7):
        masked = {"reset_mask": mask, "x": 1}
        same(
            wrapped.reset(seed=seed, options=dict(masked)),
            plain.reset(seed=seed, options=dict(masked)),
        )
    # Gymnasium's own check; an assertion before 1.4.
    kind = ValueError if GYMNASIUM >= (1, 4) else AssertionError
    with pytest.raises(kind, match="reset_mask"):
        wrapped.reset(options={"reset_mask": np.array([False, False])})


def test_reset_infos_that_rows_share_are_read_row_by_row() -> None:
    """Also under a vector wrapper, where Gymnasium's batching reads them."""
    env = Identity(SyncVectorEnv([MakeEnv(script(shared=True), i) for i in range(3)]))
    adapted = sb3compat.to_sb3(env)
    adapted.reset()
    assert [info["stamps"][0] for info in adapted.reset_infos] == [0, 1, 2]
    assert [info["deeper"]["stamps"][0] for info in adapted.reset_infos] == [0, 1, 2]
