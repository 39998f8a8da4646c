"""Which source drives which environment, and what is refused before one is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import sb3compat
from tests.envs import Identity, MakeEnv, fns, script
from tests.native import NativeEnv, UnknownEnv

NEXT_STEP, SAME_STEP = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP


def test_timeout_without_effect_is_refused() -> None:
    source = AsyncVectorEnv([MakeEnv(script(), 0)])
    with pytest.raises(ValueError, match="timeout=None"):
        sb3compat.to_sb3(Identity(source), timeout=3)
    source.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: UnknownEnv(fns(), SAME_STEP),
        lambda: UnknownEnv(fns(), AutoresetMode.DISABLED),
        lambda: NativeEnv(fns(), NEXT_STEP),
        lambda: SyncVectorEnv(fns()),
    ],
)
def test_padding_that_is_not_needed_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="can be presented exactly"):
        sb3compat.to_sb3(make(), padding=True)


def test_async_subclass_with_its_own_reset_needs_shared_memory() -> None:
    class Plain(AsyncVectorEnv):
        pass

    class OwnReset(AsyncVectorEnv):
        def reset(self, **kwargs: Any) -> Any:
            return super().reset(**kwargs)

    env = sb3compat.to_sb3(Plain(fns(2, lengths=(2, 4)), shared_memory=False))
    env.reset()
    for _ in range(8):
        env.step(np.zeros(2, int))
    assert [info["resets"] for info in env.reset_infos] == [3, 4]
    env.close()
    source = OwnReset(fns(), shared_memory=False)
    with pytest.raises(sb3compat.PartialResetError, match="shared_memory=True"):
        sb3compat.to_sb3(source)
    source.close()
