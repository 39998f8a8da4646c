"""How a check of a VecEnv is registered."""

from __future__ import annotations

from functools import partial

from sb3compat.conformance.checks.tools import marking
from sb3compat.conformance.contract import BASICS, SB3_SOURCE

marked = partial(marking.marked, "vec_env")

# The checks before those that compare two instances, and before those of ends of episodes.
DETERMINISTIC = (*BASICS["vec_env"], "same_seed_same_trajectory")
ENDINGS = (*BASICS["vec_env"], "dones_shape", "infos_n_dicts", "terminal_observation_iff_done")
# The checks before those that compare with single environments, or with a twin.
COMPARED = tuple(dict.fromkeys((*ENDINGS, *DETERMINISTIC)))

DUMMY_VEC_ENV = SB3_SOURCE.replace("base_vec_env", "dummy_vec_env")
