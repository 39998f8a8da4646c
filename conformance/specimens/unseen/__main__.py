"""Step each environment a little with random actions: none may raise, the broken ones included.

python -m conformance.specimens.unseen
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from conformance.specimens.unseen.registry import BROKEN, CORRECT, Entry

STEPS = 50


def drive(entry: Entry) -> int:
    """Return how many episodes ended in a few steps."""
    env = entry.make()
    ends = 0
    if entry.api == "VecEnv":
        env.seed(1)
        env.reset()
        actions = batch_space(env.action_space, env.num_envs)
    else:
        env.reset(seed=1)
        actions = env.action_space
    actions.seed(2)
    for _ in range(STEPS):
        if entry.api == "VecEnv":
            *_, dones, _ = env.step(actions.sample())
        else:
            _, _, terminations, truncations, _ = env.step(actions.sample())
            dones = np.asarray(terminations) | np.asarray(truncations)
            if entry.mode is AutoresetMode.DISABLED and dones.any():
                env.reset(options={"reset_mask": dones})
        ends += int(np.sum(dones))
    env.close()
    return ends


def main() -> None:
    """Drive them all, and print how often each ended."""
    for kind, entries in (("broken", BROKEN), ("correct", CORRECT)):
        counts: Counter[Any] = Counter()
        for entry in entries.values():
            mode = entry.mode.name if entry.mode else ""
            counts[entry.api, mode] += 1
            print(f"{kind:8} {entry.api:10} {mode:10} {entry.name:22} {drive(entry):4} ends")
        print(dict(counts), "\n")


if __name__ == "__main__":
    main()
