"""The statements of a program that call an environment, as each interface has them.

The results of `env` are called `obs`, `rewards` and so on, those of `twin` `twin_obs`,
`twin_rewards` and so on.
"""

from __future__ import annotations

from sb3compat.conformance.findings import Family

_STEP: dict[Family, tuple[str, ...]] = {
    "vec_env": ("obs", "rewards", "dones", "infos"),
    "vector_env": ("obs", "rewards", "terminations", "truncations", "infos"),
}


def opening(family: Family, setup: str, seed: int | None) -> list[str]:
    """The statements between making an environment and its first step."""
    return [*([setup] if setup else []), *resetting(family, seed)]


def resetting(family: Family, seed: int | None, env: str = "env") -> list[str]:
    """The statements that reset an environment, with a seed unless it is None."""
    if family == "vec_env":
        seeding = [] if seed is None else [f"{env}.seed({seed})"]
        return [*seeding, f"{_named(('obs',), env)} = {env}.reset()"]
    argument = "" if seed is None else f"seed={seed}"
    return [f"{_named(('obs', 'infos'), env)} = {env}.reset({argument})"]


def resetting_rows(mask: str, seed: int | None, env: str = "env") -> str:
    """The statement that resets the rows of a VectorEnv under a mask, given as source."""
    argument = "" if seed is None else f"seed={seed}, "
    names = _named(("obs", "infos"), env)
    return f"{names} = {env}.reset({argument}options={{'reset_mask': {mask}}})"


def stepping(family: Family, actions: str, env: str = "env") -> str:
    """The statement that steps an environment with these actions, given as source."""
    return f"{_named(_STEP[family], env)} = {env}.step({actions})"


def _named(results: tuple[str, ...], env: str) -> str:
    return ", ".join(results if env == "env" else (f"{env}_{name}" for name in results))
