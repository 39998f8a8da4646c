"""Every Python snippet in the README and the docs runs."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("page", [page for page, snippets in SNIPPETS.items() if snippets])
def test_snippets_of_a_page_run(page: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    if page.endswith("use-optuna.md"):
        pytest.importorskip("optuna", reason="needs Python 3.11, with what it needs")
    for number, code in enumerate(scripts_of(page)):
        found = FILE.match(code)
        path = tmp_path / (found[1] if found else f"snippet_{number}.py")
        path.write_text(code)
        done = run(path, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


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
