"""The site builds without a warning and has every public name; its search finds the questions."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sb3compat
from sb3compat import conformance, errors

ROOT = Path(__file__).parents[1]

# What somebody types into the search, and the page that has the answer.
SEARCHES = {
    "The environment is of type <class 'gymnasium.vector'>, not a Gymnasium environment": (
        "questions/not-a-gymnasium-environment"
    ),
    "ValueError The environment is of type CartPoleVectorEnv": (
        "questions/not-a-gymnasium-environment"
    ),
    "Unrecognized type of observation <class 'tuple'>": (
        "questions/unrecognized-type-of-observation"
    ),
    "Support VecEnv for gymnasium.vector.VectorEnv and Brax": "questions/vec-env-for-a-vector-env",
    "convert PettingZoo gym v26 environment to SB3 VecEnv": "questions/pettingzoo-and-gym-v26",
    "check_env VecEnv": "questions/check-a-vec-env",
    "Your environment must inherit from the gymnasium.Env class": "questions/check-a-vec-env",
    "too many values to unpack (expected 2)": "questions/too-many-values-to-unpack",
    "not enough values to unpack (expected 5, got 4)": "questions/too-many-values-to-unpack",
    "KeyError: 'terminal_observation'": "questions/missing-terminal-observation",
    "terminal_observation missing": "questions/missing-terminal-observation",
    "Evaluation environment is not wrapped with a Monitor wrapper": "questions/monitor-warnings",
    "environment is already wrapped with a `Monitor` wrapper": "questions/monitor-warnings",
    "DictInfoToList": "questions/dict-info-to-list",
    "SubprocVecEnv slower AsyncVectorEnv": "questions/subproc-vec-env-is-slow",
    "SubprocVecEnv several machines": "questions/several-machines",
    "ep_rew_mean": "how-to/log-episode-returns",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton", "stable_baselines3"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}: make docs installs it")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-E"]
    done = subprocess.run(
        [*command, "-d", str(out / "doctrees"), str(ROOT / "docs"), str(out / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def index(site: Path) -> Any:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def found(index: Any, query: str) -> set[str]:
    """The pages that have all words of the query, as Sphinx's script looks for them."""
    from sphinx.search.en import SearchEnglish

    language = SearchEnglish({})
    hits = set(index["docnames"])
    for word in re.findall(r"\w+", query.lower()):
        if word in language.stopwords or word.isdigit():
            continue
        stem = language.stem(word)
        pages: set[str] = set()
        for terms in (index["terms"], index["titleterms"]):
            # A part of a word is enough from three letters on.
            for term, numbers in terms.items():
                if term == stem or (len(stem) > 2 and stem in term):
                    numbers = numbers if isinstance(numbers, list) else [numbers]
                    pages |= {index["docnames"][number] for number in numbers}
        hits &= pages
    return hits


@pytest.mark.parametrize("query", SEARCHES)
def test_search_finds_the_page(query: str, index: Any) -> None:
    assert SEARCHES[query] in found(index, query)


def test_search_finds_nothing_for_other_words(index: Any) -> None:
    assert not found(index, "observation zebra")


def test_every_question_is_searched_for() -> None:
    pages = {f"questions/{page.stem}" for page in (ROOT / "docs" / "questions").glob("*.md")}
    assert pages <= set(SEARCHES.values())


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
    own = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == "sb3compat.errors" and name[0] != "_"
    }
    assert set(sections) == own
    for name, section in sections.items():
        for part in ("**Cause.**", "**What to do.**", f'"<!-- {name} -->"'):
            assert part in section, name


def test_messages_of_the_source_are_on_the_errors_page(site: Path) -> None:
    page = (site / "reference" / "errors.html").read_text(encoding="utf-8")
    text = " ".join(re.sub(r"<[^>]*>", "", page).split())
    for exception, message in {
        "CallOrderError": "Expected step_async(actions) before step_wait().",
        "UnsupportedEnvError": "Remove that wrapper: to_sb3 makes the list of dicts itself.",
        "MissingTruncationError": "Expected infos[…]['TimeLimit.truncated'] at the end",
        "EndedRowError": "to be reset before the next step, as their episodes have ended",
    }.items():
        section = text.partition(f"{exception}¶")[2].partition("¶")[0]
        assert message in html.unescape(section), message
    for warning in ("The last observation of row … equals the first one of its next episode.",):
        assert warning in html.unescape(text)


def test_help_of_each_command_is_on_the_site(site: Path) -> None:
    text = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for command in ("check", "list", "explain", "replay", "trace", "versions"):
        assert f"usage: sb3compat {command}" in text


def test_copied_pages_have_the_text_of_their_files(site: Path) -> None:
    for page, words in {
        "reference/changelog": "register_partial_reset",
        "reference/measurements": "How it is measured",
        "contributing": "A test that cannot fail is a defect",
        "reference/kit-results": "At a glance",
        "reference/published-adapters": "The main one",
    }.items():
        assert words in (site / f"{page}.html").read_text(encoding="utf-8")
