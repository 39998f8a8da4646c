"""The options that the command line, pytest and pyproject.toml share."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

from sb3compat import cli
from sb3compat._arguments import KNOWLEDGE, MAKING, RUN, SettingsError, settings
from sb3compat.conformance.commands.check import options_of
from sb3compat.conformance.commands.targets import Target

TARGET = "tests.conformance.tiny:TinyVecEnv"
WRITTEN = """
[tool.sb3compat]
seed = 3
max-seconds = 7.5
programs = 6
require-exercised = 9
only = ["dones_*", "rewards_*"]
skip = ["rewards_float32"]
known-upstream = true
strict = true
no-isolate = true
capability = ["render"]
no-capability = ["sub_envs"]
reset-options = { difficulty = 2 }
reference = "tests.conformance.tiny:singles"
expected-failures = "known.toml"

[tool.sb3compat.targets."tests.conformance.tiny:TinyVecEnv"]
seed = 4
"""


def given(*arguments: str) -> Namespace:
    return cli._parsed(["check", *arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(WRITTEN)
    (tmp_path / "known.toml").write_text('[dones_bool_array]\nreason = "known"\n')
    (tmp_path / "inner" / "most").mkdir(parents=True)
    return tmp_path / "inner" / "most"


def options(folder: Path, *arguments: str) -> Any:
    filled = settings(folder).fill(given(*arguments))
    return options_of(filled, Target(filled.target, int, "make_env = ..."))


@pytest.mark.parametrize("arguments", [[TARGET], []])
def test_settings_stand_for_options_that_are_not_given(project: Path, arguments: list[str]) -> None:
    found = options(project, *arguments)
    assert (found.seed, found.max_seconds, found.isolate) == (4, 7.5, False)
    assert (found.programs, found.require_exercised) == (6, 9)
    assert (found.only, found.skip) == (("dones_*", "rewards_*"), ("rewards_float32",))
    assert (found.known_upstream, found.strict) == (True, True)
    assert found.capabilities == {"render": True, "sub_envs": False}
    assert found.options == {"difficulty": 2}
    assert len(found.reference) == 2
    assert found.expected_failures == {"dones_bool_array": "known"}


def test_the_command_line_overrules_the_settings(project: Path) -> None:
    found = options(
        project, TARGET, "--seed=0", "--only=dones_shape", "--no-capability=render",
        "--max-seconds=1",
    )  # fmt: skip
    assert (found.seed, found.max_seconds, found.only) == (0, 1.0, ("dones_shape",))
    assert found.capabilities == {"render": False}


def test_settings_of_another_target_are_not_taken(project: Path) -> None:
    assert options(project, "tests.conformance.tiny:FloatDones").seed == 3


def test_every_option_of_a_run_can_be_written_down() -> None:
    names = {argument.name for argument in (*RUN, *KNOWLEDGE)}
    assert names <= {line.partition(" = ")[0] for line in WRITTEN.splitlines()}


def test_expected_failures_may_be_tables(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.sb3compat.expected-failures.dones_bool_array]\nreason = "so"\nlink = "https://e.org"'
    )
    assert options(tmp_path, TARGET).expected_failures == {"dones_bool_array": "so (https://e.org)"}


def test_how_to_make_an_id_can_be_written_down(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.sb3compat.targets.CartPole-v1]\nnum-envs = 2\nvec-env = "dummy"\n'
        "env-kwargs = { max_episode_steps = 20 }\n"
    )
    found = settings(tmp_path).fill(given())
    assert (found.target, found.num_envs, found.vec_env) == ("CartPole-v1", 2, "dummy")
    assert found.env_kwargs == {"max_episode_steps": 20}
    assert {argument.dest for argument in MAKING} <= vars(found).keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_seconds = 3", r"got 'max_seconds'\. Did you mean 'max-seconds'\?"),
        ("html = 'x'", r"an option of `sb3compat check` in .*pyproject\.toml, got 'html'"),
        ("strict = 'yes'", r"Expected true or false, got strict = 'yes'\."),
        ("only = 'dones_*'", r"Expected a list of strings, got only = 'dones_\*'\."),
        ("seed = 1.5", r"Expected a whole number, got seed = 1\.5\."),
        ("seed = true", r"Expected a whole number, got seed = True\."),
        ("max-seconds = 0", r"Expected a number above 0, got max-seconds = 0\."),
        ("num-envs = 2.0", r"Expected a whole number above 0, got num-envs = 2\.0\."),
        ("reset-options = []", r"Expected a table, got reset-options = \[\]\."),
        ("expected-failures = 1", r"Expected the path of a file, got expected-failures = 1\."),
        ("reference = 1", r"Expected a string, got reference = 1\."),
        ("vec-env = 'sub'", r"Expected 'dummy', 'subproc', got vec-env = 'sub'\."),
        ("targets = 1", r"to be tables in .*, got \{'targets': 1\}\. Write them as tables\."),
        ("targets.x = 1", r"to be tables in .*, got \{'targets': \{'x': 1\}\}\."),
        ("strict = ", r"Expected a TOML file, got .*pyproject\.toml': .*\. Fix its syntax\.$"),
    ],
)
def test_wrong_settings_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.sb3compat]\n{text}\n")
    with pytest.raises(SettingsError, match=message):
        settings(tmp_path).fill(given(TARGET))


def test_without_settings_a_target_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The settings of another tool, and what is no TOML at all, are nothing to us.
    (tmp_path / "pyproject.toml").write_text("[tool.other\n")
    assert settings(tmp_path).fill(given(TARGET)) == given(TARGET)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check"]) == 2
    assert "Expected a TARGET, or exactly one table [tool." in capsys.readouterr().err


def test_several_targets_are_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.sb3compat.targets]\n'a:make' = {}\n'b:make' = {}\n"
    )
    with pytest.raises(SettingsError, match=r"got no TARGET\. .*: a:make, b:make\. Name a TARGET"):
        settings(tmp_path).fill(given())


def test_autoreset_modes_have_two_spellings(tmp_path: Path) -> None:
    for mode in AutoresetMode:
        found = given("CartPole-v1", "--autoreset-mode", mode.name)
        assert found.autoreset_mode == mode.value
    (tmp_path / "pyproject.toml").write_text("[tool.sb3compat]\nautoreset-mode = 'SAME_STEP'\n")
    assert settings(tmp_path).fill(given("CartPole-v1")).autoreset_mode == "SameStep"


def test_gymnasiums_word_for_native_is_an_alias(tmp_path: Path) -> None:
    assert given("x-v0", "--vectorization-mode=vector_entry_point").vectorization_mode == "native"
    text = '[tool.sb3compat.targets.CartPole-v1]\nvectorization-mode = "vector_entry_point"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    assert settings(tmp_path).fill(given()).vectorization_mode == "native"
