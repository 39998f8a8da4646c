"""Options, names that do not exist, and the keywords of the public functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from sb3compat import conformance
from sb3compat.conformance import check_vec_env, check_vector_env
from sb3compat.conformance.run import entry
from sb3compat.conformance.run.options import Options
from tests.conformance.tiny import NoReset, TinyVecEnv

CHECKS: list[Callable[..., Any]] = [check_vec_env, check_vector_env]
GIVEN: dict[str, Any] = {
    "seed": 5,
    "max_seconds": 7.5,
    "programs": 4,
    "only": ("dones_bool_array",),
    "skip": ("trains_*",),
    "expected_failures": {"dones_bool_array": "known"},
    "known_upstream": True,
    "strict": True,
    "isolate": False,
    "make_env": "make_env = ...",
    "capabilities": {"render": False},
    "options": {"x": 3},
    "reference": [TinyVecEnv],
    "require_exercised": 3,
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ("dones_bool",)}, r"`only`, got 'dones_bool'\. Did you mean 'dones_bool_array'"),
        ({"only": ("dones_bol_*",)}, r"in `only`, got 'dones_bol_\*'"),
        ({"skip": ("trains_pp",)}, r"`skip`, got 'trains_pp'\. Did you mean 'trains_ppo'"),
        ({"only": "dones_bool_array"}, r"\(str\)\. Pass only=\['dones_bool_array'\], or leave"),
        # A pattern would let any failure through.
        ({"expected_failures": {"dones_*": "x"}}, r"in `expected_failures`, got 'dones_\*'"),
        ({"expected_failures": {"qqq": "x"}}, r"got 'qqq'\. `sb3compat list` shows them\.$"),
        ({"capabilities": {"rendr": True}}, r"a capability, got 'rendr'\. Did you mean 'render'"),
    ],
)
def test_unknown_names_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_vec_env(TinyVecEnv, **options)


def test_the_errors_of_the_functions_are_public() -> None:
    with pytest.raises(conformance.OptionsError) as wrong_option:
        check_vec_env(TinyVecEnv, programs=0)
    with pytest.raises(conformance.FactoryError, match="got int: 3") as wrong_factory:
        check_vec_env(lambda: 3)  # from the child process
    with pytest.raises(conformance.ConformanceError) as broken:
        check_vec_env(NoReset, only=("reset_returns_obs_only",), isolate=False)
    for caught in (wrong_option, wrong_factory, broken):
        assert caught.type.__module__ == "sb3compat.conformance"
        assert getattr(conformance, caught.type.__name__) is caught.type


@pytest.mark.parametrize("check", CHECKS)
def test_each_option_is_a_keyword_with_the_same_default(check: Callable[..., Any]) -> None:
    keywords = dict(inspect.signature(check).parameters)
    assert keywords.pop("factory").kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert keywords.pop("on_fail").default == "raise"
    assert [*keywords] == [option.name for option in fields(Options)]
    usual = Options()
    for name, keyword in keywords.items():
        assert keyword.kind is inspect.Parameter.KEYWORD_ONLY
        # None stands for an empty mapping.
        assert keyword.default == (getattr(usual, name) or keyword.default)
        assert not keyword.default or keyword.default == getattr(usual, name)


def test_each_option_is_documented() -> None:
    text = inspect.getdoc(check_vec_env) or ""
    assert [f.name for f in fields(Options) if f"    {f.name}: " not in text] == []
    for other in (check_vector_env, Options):
        assert "`check_vec_env`" in (inspect.getdoc(other) or "")
    assert check_vector_env.__annotations__ == check_vec_env.__annotations__


@pytest.mark.parametrize("check", CHECKS)
def test_each_keyword_reaches_the_run(
    check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert GIVEN.keys() == {option.name for option in fields(Options)}
    runs: list[dict[str, Any]] = []
    monkeypatch.setattr(entry, "run", lambda factory, **given: runs.append(given))
    check(TinyVecEnv, on_fail=None, **GIVEN)
    check(TinyVecEnv)
    assert [given["options"] for given in runs] == [Options(**GIVEN), Options()]
    assert [given["stop_at_failure"] for given in runs] == [False, True]
    assert {given["family"] for given in runs} == {check.__name__.removeprefix("check_")}
