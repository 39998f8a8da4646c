"""The site builds without a warning and has every public name, message and command."""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path

import pytest

import sb3compat
from sb3compat import conformance, errors
from tests.interpreter import REPOSITORY as ROOT
from tests.interpreter import run
from tests.test_errors import OWN


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton", "stable_baselines3"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}: make docs installs it")
    out = tmp_path_factory.mktemp("site")
    command = ("-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-E", "-d")
    done = run(*command, out / "doctrees", ROOT / "docs", out / "html")
    assert done.returncode == 0, done.stderr
    return out / "html"


def test_api_page_names_all_that_is_public() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    documented = set(re.findall(r"auto(?:function|class|exception):: ([\w.]+)", text))
    names = {f"sb3compat.{name}" for name in sb3compat.__all__ if name != "__version__"}
    own = {f"sb3compat.{name}" for name in vars(errors)}  # automodule
    assert "automodule:: sb3compat.errors" in text
    kit = {f"sb3compat.conformance.{name}" for name in conformance.__all__}
    assert documented == names - own | kit


def test_errors_page_names_every_exception() -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text()
    sections = dict(re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(sections) == {cls.__name__ for cls in OWN}
    for name, section in sections.items():
        for part in ("**Cause.**", "**What to do.**", f'"<!-- {name} -->"'):
            assert part in section, name


def test_site_has_the_messages_the_commands_and_the_copied_pages(site: Path) -> None:
    page = (site / "reference" / "errors.html").read_text(encoding="utf-8")
    text = " ".join(re.sub(r"<[^>]*>", "", page).split())
    for exception, message in {
        "CallOrderError": "Expected step_async(actions) before step_wait().",
        "UnsupportedEnvError": "Remove that wrapper: to_sb3 makes the list of dicts itself.",
    }.items():
        section = text.partition(f"{exception}¶")[2].partition("¶")[0]
        assert message in html.unescape(section), message
    usages = (f"usage: sb3compat {name}" for name in ("check", "list", "replay", "trace"))
    for page, words in {
        "reference/command-line": usages,
        "reference/changelog": ["register_partial_reset"],
        "reference/kit-results": ["At a glance"],
    }.items():
        written = (site / f"{page}.html").read_text(encoding="utf-8")
        assert all(each in written for each in words), page
