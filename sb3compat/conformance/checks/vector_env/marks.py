"""How a check of a VectorEnv is registered, and the sources of its contract."""

from __future__ import annotations

from functools import partial

from sb3compat.conformance.checks.tools import marking
from sb3compat.conformance.contract import BASICS, GYM_VECTOR

marked = partial(marking.marked, "vector_env")

# The checks before those of episodes, and before those that compare two instances.
EPISODES = (*BASICS["vector_env"], "autoreset_mode_matches_behaviour")
DETERMINISTIC = (*EPISODES, "same_seed_same_trajectory")

GYMNASIUM = "https://github.com/Farama-Foundation/Gymnasium/blob/main/gymnasium/"
DICT_INFO = f"{GYMNASIUM}wrappers/vector/dict_info_to_list.py"
STATISTICS = f"{GYMNASIUM}wrappers/vector/common.py"
VECTOR_ENV = f"{GYMNASIUM}vector/vector_env.py"
SYNC = f"{GYMNASIUM}vector/sync_vector_env.py"
STEP = f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.step"
RESET = f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.reset"
CLOSE = f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.close"
RENDER = f"{GYM_VECTOR}#gymnasium.vector.VectorEnv.render"
