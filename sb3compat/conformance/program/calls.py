"""The statements of a program that call the environment, as each interface has them."""

from __future__ import annotations

from sb3compat.conformance.findings import Family

RESET_BOTH = "obs, infos = env.reset()"

_STEP: dict[Family, str] = {
    "vec_env": "obs, rewards, dones, infos = env.step({})",
    "vector_env": "obs, rewards, terminations, truncations, infos = env.step({})",
}


def opening(family: Family, setup: str, seed: int | None) -> list[str]:
    """The statements between making an environment and its first step."""
    lines = [setup] if setup else []
    if family == "vec_env":
        if seed is not None:
            lines.append(f"env.seed({seed})")
        return [*lines, "obs = env.reset()"]
    return [*lines, f"obs, infos = env.reset(seed={seed})" if seed is not None else RESET_BOTH]


def stepping(family: Family, actions: str) -> str:
    """The statement that steps the environment with these actions, given as source."""
    return _STEP[family].format(actions)
