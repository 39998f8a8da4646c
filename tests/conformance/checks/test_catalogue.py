"""The catalogue of checks."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from sb3compat.conformance import checks
from sb3compat.conformance.checks.catalogue import ORDER, checks_of, find_checks
from sb3compat.conformance.contract import registered


@pytest.mark.parametrize("family", ORDER)
def test_each_module_of_a_folder_is_in_the_catalogue(family: str) -> None:
    folder = Path(checks.__path__[0], family)
    assert {path.stem for path in folder.glob("[!_]*.py")} - {"marks"} == set(ORDER[family])


@pytest.mark.parametrize("family", ORDER)
def test_checks_are_in_the_order_of_their_modules(family: str) -> None:
    modules = [import_module(f"{checks.__name__}.{family}.{name}") for name in ORDER[family]]
    found = [(name, vars(module)) for module in modules for name in vars(module)]
    known = {check.id: check.function for check in checks_of(family)}
    assert [name for name, own in found if known.get(name) is own[name]] == list(known)


def test_every_check_of_the_kit_is_in_the_catalogue() -> None:
    own = {(c.family, c.id) for c in registered() if c.function.__module__.startswith("sb3compat.")}
    assert own == {(check.family, check.id) for check in checks_of()}


@pytest.mark.parametrize("family", ORDER)
def test_a_check_comes_after_checks_that_exist(family: str) -> None:
    known = {check.id for check in checks_of(family)}
    assert {name for check in checks_of(family) for name in check.after} <= known


def test_every_check_explains_itself() -> None:
    for check in checks_of():
        assert check.contract.endswith("."), check.id
        assert check.source.startswith("https://"), check.id
        assert check.family == "vec_env" or len(check.explanation) > 60, check.id


def test_an_id_may_stand_for_a_check_of_each_interface() -> None:
    found = find_checks("wrong_action_count_rejected")
    assert [check.family for check in found] == ["vec_env", "vector_env"]


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'dones_bool_aray'\. Did you mean 'dones_bool_array'"):
        find_checks("dones_bool_aray")


def test_a_mode_leaves_out_the_checks_of_other_modes() -> None:
    found = {check.id for check in checks_of("vector_env", "SameStep")}
    assert "obs_is_reset_obs" in found
    assert "reset_step_reward_zero" not in found
    assert "rewards_shape" in found
