"""What an exception says, and the line at which a warning points."""

from __future__ import annotations

import ast
import pickle
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import sb3compat
from docs.generate import template
from sb3compat import errors
from sb3compat.errors import shown
from tests.envs import Identity, Returns, fns
from tests.interpreter import REPOSITORY
from tests.native import NativeEnv

OWN = {
    value
    for name, value in vars(errors).items()
    if isinstance(value, type) and value.__module__ == errors.__name__ and name[0] != "_"
}


def notes(error: BaseException) -> list[str]:
    """What a traceback shows below the message. Python 3.10 has no notes."""
    return getattr(error, "__notes__", [])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no notes")
@pytest.mark.parametrize("cls", sorted(OWN, key=lambda cls: cls.__name__))
def test_traceback_names_the_section_of_the_page_about_errors(cls: type[Exception]) -> None:
    error = cls("Expected one thing, got another")
    assert str(error) == "Expected one thing, got another"
    (note,) = notes(error)
    path, _, anchor = note.removeprefix("Cause and remedy: ").partition("#")
    # The address of a heading is its text in small letters, on the site and on GitHub.
    headings = re.findall(r"^## (\w+)$", Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in [heading.lower() for heading in headings]
    assert note in "".join(traceback.format_exception(error))


def test_errors_page_names_every_exception() -> None:
    text = (REPOSITORY / "docs" / "reference" / "errors.md").read_text()
    sections = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == {cls.__name__ for cls in OWN}
    for name, section in sections.items():
        for part in ("**Cause.**", "**What to do.**", f'"<!-- {name} -->"'):
            assert part in section, name


# A clause that says what to do; or a part at the end that is only known when the message is made.
_WHAT_TO_DO = re.compile(
    r"([.:;]|, or|, and|\bOr|,) (adapt|add|build|call|change|close|combine|correct|derive|end|"
    r"finish|fix|give|install|leave|let|make|mind|move|name|pass|put|raise|read|register|remove|rename|"
    r"return|run|say|set|shift|take|upgrade|use|write)\b|…\.?$",
    re.IGNORECASE,
)


def test_each_message_says_what_to_do() -> None:
    messages = {
        f"{path.relative_to(REPOSITORY)}:{node.lineno}": template(node.args[0], {})
        for path in (REPOSITORY / "sb3compat").rglob("*.py")
        if "checks" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and node.args
    }
    expected = {place: text for place, text in messages.items() if text.startswith("Expected ")}
    assert len(expected) > 150
    silent = {place: text for place, text in expected.items() if not _WHAT_TO_DO.search(text)}
    assert not silent


def test_exception_that_was_pickled_has_one_note() -> None:
    error = errors.EndedRowError("Expected rows [1] to be reset")
    assert notes(pickle.loads(pickle.dumps(error))) == notes(error)


def test_traceback_of_a_worker_names_no_remedy() -> None:
    cause = errors.traceback_in_worker("row 3", "Traceback: …")
    assert str(cause) == "in the worker of row 3:\nTraceback: …"
    assert not notes(cause)


@pytest.mark.parametrize("length", [0, 197, 198, 199, 1000])
def test_value_that_is_cut_off_ends_with_an_ellipsis(length: int) -> None:
    text = shown("x" * length)
    assert len(text) <= 200
    assert text == repr("x" * length) or (text[:199] == repr("x" * length)[:199] and length > 198)
    assert text.endswith("…") == (length > 198)


def same_step() -> Any:
    return NativeEnv(fns(), AutoresetMode.SAME_STEP)


def repeated_observations() -> None:
    def ones(_: Any, *rest: Any) -> Any:
        return np.ones(3, np.float32), *rest

    made = [lambda: Returns(step=ones, reset=ones, lengths=(1,))]
    source = SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)
    env = sb3compat.to_sb3(Identity(source))
    env.reset()
    env.step([0])


@pytest.mark.parametrize(
    "cause",
    [
        lambda: sb3compat.to_sb3(same_step(), autoreset_mode="Disabled"),
        repeated_observations,
    ],
)
def test_warnings_point_at_the_line_of_the_user(cause: Callable[[], None]) -> None:
    with pytest.warns(UserWarning, match="overrides it|equals the first") as caught:
        cause()
    assert [warning.filename for warning in caught] == [__file__] * len(caught)
