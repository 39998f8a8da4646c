"""What both row-by-row sources do with the rewards, infos and arguments of one row."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import sb3compat
from tests.envs import ScriptedEnv, script


def test_reward_that_is_no_number_is_refused() -> None:
    class Pair(gym.RewardWrapper[Any, Any]):
        def reward(self, reward: Any) -> Any:
            return np.array([reward, reward])

    env = sb3compat.to_sb3(SyncVectorEnv([lambda: Pair(ScriptedEnv(script()))]))
    env.reset()
    with pytest.raises(sb3compat.ConversionError, match="reward of row 0 to be one number"):
        env.step(np.array([0]))
