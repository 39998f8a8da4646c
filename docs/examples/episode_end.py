"""An episode's end in the four layouts, drawn from a real run: `docs/explanation/episode-end.svg`.

python docs/examples/episode_end.py [file]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym

import sb3compat


class Countdown(gym.Env[Any, Any]):
    """Counts from 3 down to 0, which terminates."""

    observation_space = gym.spaces.Discrete(4)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.left = 3
        return self.left, {"fuel": "full"}

    def step(self, action: Any) -> Any:
        self.left -= 1
        return self.left, 1.0, self.left == 0, False, {"fuel": self.left}


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the end of an episode.")
    parser.add_argument("file", nargs="?", type=Path, default="episode-end.svg")
    path = parser.parse_args().file
    seen = sb3compat.trace(lambda: gym.vector.SyncVectorEnv([Countdown]), episodes=1)
    path.write_text(seen.svg(width=118), encoding="utf-8")


if __name__ == "__main__":
    main()
