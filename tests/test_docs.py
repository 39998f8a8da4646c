"""Every Python snippet in the README and the docs runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interpreter import REPOSITORY as ROOT
from tests.interpreter import run

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name[0] != "_"),
]
SNIPPETS = {
    str(page.relative_to(ROOT)): re.findall(
        r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S
    )
    for page in PAGES
}


def test_readme_snippets_are_found() -> None:
    assert len(SNIPPETS["README.md"]) == 3
    assert any("to_gymnasium(venv)" in code for code in SNIPPETS["README.md"])
    assert "model.learn(200_000, progress_bar=True)" in SNIPPETS["README.md"][0]


# Importing torch takes longer than all that the snippets do: one process imports it, and forks for
# each script.
RUNNER = """
import json, os, runpy, sys
from multiprocessing import get_context

import stable_baselines3

def run(script):
    sys.path.insert(0, os.path.dirname(script))
    out = os.open(script + ".out", os.O_WRONLY | os.O_CREAT)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")

codes = {}
for script in sys.argv[1:]:
    process = get_context("fork").Process(target=run, args=(script,))
    process.start()
    process.join()
    codes[script] = process.exitcode
print(json.dumps(codes))
"""


def scripts_of(page: str) -> list[str]:
    """A page's snippets may build on one another; those of the README stand alone as well.

    So do those that begin with the name of a file, of a page that has only such.
    """
    snippets = SNIPPETS[page]
    alone = page == "README.md" or (len(snippets) > 1 and all(map(FILE.match, snippets)))
    return [quick(code) for code in (snippets if alone else ["\n".join(snippets)])]


# The first line of a snippet that the reader saves.
FILE = re.compile(r"# (\w+\.py)\n")


def quick(code: str) -> str:
    """The same, but not for minutes."""
    code = re.sub(r"PPO\(\"MlpPolicy\", (\w+)\)", r'PPO("MlpPolicy", \1, n_steps=8)', code)
    code = code.replace("[make_env] * 8", "[make_env] * 2").replace("n_trials=10", "n_trials=2")
    code = code.replace("max_seconds=5", "max_seconds=1")
    code = code.replace("programs=5", 'programs=1, only=["rewards_*"]')
    code = code.replace(", progress_bar=True", "")
    return re.sub(r"learn\(\d+(_\d{3})+", "learn(1_000", code)


@pytest.fixture(scope="module")
def ran(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[tuple[int, str]]]:
    """The exit status and the output of each script, by page, of the pages that are tested."""
    pytest.importorskip("stable_baselines3")
    folder = tmp_path_factory.mktemp("snippets")
    scripts: dict[str, list[Path]] = {}
    asked = {
        item.callspec.params["page"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_snippets_of_a_page_run"
    }
    for number, page in enumerate(page for page in SNIPPETS if page in asked):
        scripts[page] = []
        for code in scripts_of(page) if SNIPPETS[page] else []:
            found = FILE.match(code)
            name = found[1] if found else f"page{number}_{len(scripts[page])}.py"
            path = folder / f"page{number}" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(code)
            scripts[page].append(path)
    paths = [str(path) for paths in scripts.values() for path in paths]
    command = [sys.executable, "-c", RUNNER, *paths]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=folder, check=True)
    codes = json.loads(done.stdout)
    return {
        page: [(codes[str(path)], Path(f"{path}.out").read_text()) for path in paths]
        for page, paths in scripts.items()
    }


@pytest.mark.parametrize("page", [page for page, snippets in SNIPPETS.items() if snippets])
def test_snippets_of_a_page_run(page: str, ran: dict[str, list[tuple[int, str]]]) -> None:
    if page.endswith("use-optuna.md"):
        pytest.importorskip("optuna", reason="needs Python 3.11, with what it needs")
    assert len(ran[page]) == len(scripts_of(page))
    for code, output in ran[page]:
        assert code == 0, output


@pytest.mark.parametrize("page", SNIPPETS)
def test_links_between_pages_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target


def checked(factory: str, folder: Path) -> list[str]:
    """The lines that the command of the tutorial prints, without how long it took."""
    command = ("-m", "sb3compat", "check", f"{factory}:make_env", "--no-capability", "sub_envs")
    lines = run(*command, cwd=folder).stdout.splitlines()
    return [re.sub(r" in \d.* s$", "", line.strip()) for line in lines]


def test_the_tutorial_on_checking_shows_what_the_command_prints(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    page = "docs/tutorial/5-fix-a-vec-env.md"
    for code in SNIPPETS[page]:
        found = FILE.match(code)
        assert found
        (tmp_path / found[1]).write_text(code)
    text = (ROOT / page).read_text()
    shown = "".join(re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)).splitlines()
    printed = checked("rover.py", tmp_path)
    assert [line for line in shown if line.strip() not in [*printed, "…"]] == []
    # The page leaves out no finding.
    heads = ("failed: ", "warning: ")
    assert [x for x in printed if x.startswith(heads)] == [x for x in shown if x.startswith(heads)]
    counts = checked("fixed_rover.py", tmp_path)[-1]
    assert f"`{counts}`" in text
