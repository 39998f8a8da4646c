"""The parser, and what every command has in common."""

from __future__ import annotations

import pytest
from gymnasium.vector import AutoresetMode

from sb3compat import _arguments, cli
from sb3compat.conformance.output import FORMATS


def test_the_parser_repeats_the_names_of_the_kit() -> None:
    assert cli.FORMATS == FORMATS
    assert [*_arguments.AUTORESET_MODES] == [mode.value for mode in AutoresetMode]


@pytest.mark.parametrize(
    ("command", "option", "message"),
    [
        ("check", "--num-envs=0", "Expected a number above 0, got '0'."),
        ("check", "--max-seconds=soon", "Expected a number above 0, got 'soon'."),
        ("check", "--env-kwargs=[1]", "a JSON object such as '{\"key\": 1}', got '[1]'."),
        ("check", "--reset-options={a: 1}", "Mind the quotes"),
        ("check", "--autoreset-mode=same", "got 'same'. Did you mean 'SameStep'?"),
        ("check", "--vectorization-mode=nativ", "Did you mean 'native'?"),
        ("check", "--vec-env=x", "Expected one of dummy, subproc, got 'x'. Pass one of these."),
        ("replay", "--num-envs=0", "Expected a number above 0"),
        ("trace", "--num-envs=0", "Expected a number above 0"),
        ("check", "--n-envs=0", "Expected a number above 0"),
    ],
)
def test_wrong_values_are_told_below_one_line_of_usage(
    command: str, option: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([command, "x", option])
    assert end.value.code == 2
    usage, said = capsys.readouterr().err.splitlines()
    assert usage.startswith(f"usage: sb3compat {command} [OPTIONS] ")
    assert message in said


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["check", "--sead", "3"], "--sead. Did you mean '--seed'?"),
        (["trace", "CartPole-v1", "--episode-count=3"], "--episode-count=3. Did you mean '--epis"),
        (["tune", "CartPole-v1", "more"], "unrecognized arguments: more"),
        (["chek", "CartPole-v1"], "got 'chek'. Did you mean 'check'?"),
        (["CartPole-v1"], "versions), got 'CartPole-v1'. Name one of these."),
    ],
)
def test_an_unknown_option_or_command_names_the_near_one(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 2
    assert hint in capsys.readouterr().err
