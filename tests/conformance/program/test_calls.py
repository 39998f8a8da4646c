"""Statements that call an environment."""

from __future__ import annotations

from sb3compat.conformance.program.calls import opening, resetting, resetting_rows, stepping


def test_opening_a_vec_env() -> None:
    setup = "env.action_space.seed(0)"
    assert opening("vec_env", setup, 3) == [setup, "env.seed(3)", "obs = env.reset()"]
    assert opening("vec_env", "", None) == ["obs = env.reset()"]


def test_opening_a_vector_env() -> None:
    assert opening("vector_env", "", 0) == ["obs, infos = env.reset(seed=0)"]
    assert opening("vector_env", "", None) == ["obs, infos = env.reset()"]


def test_the_results_of_a_twin_have_its_name() -> None:
    assert resetting("vec_env", 1, "twin") == ["twin.seed(1)", "twin_obs = twin.reset()"]
    assert stepping("vec_env", "a", "twin") == (
        "twin_obs, twin_rewards, twin_dones, twin_infos = twin.step(a)"
    )
    assert stepping("vector_env", "a") == (
        "obs, rewards, terminations, truncations, infos = env.step(a)"
    )
    assert resetting_rows("m", 2, "twin") == (
        "twin_obs, twin_infos = twin.reset(seed=2, options={'reset_mask': m})"
    )
