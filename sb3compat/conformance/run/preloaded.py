"""What a fork server imports once, so that the worker processes which it starts need not.

Without it each worker of a `SubprocVecEnv` imports Stable-Baselines3 and PyTorch, which takes
seconds. The modules of the user are not among it: what they do when they are imported, such as
making a generator of random numbers, each worker has to do by itself.

Importing this module does it; nothing but a fork server may.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

for _name in ("gymnasium", "stable_baselines3.common.vec_env.subproc_vec_env"):
    with suppress(Exception):  # whoever needs it will see
        if find_spec(_name.partition(".")[0]):
            import_module(_name)

with suppress(Exception):
    # The workers must not share the state of a generator, as they would not without this module.
    os.register_at_fork(after_in_child=import_module("numpy").random.seed)
