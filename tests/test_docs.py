"""Every Python snippet in the README and the docs runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = {
    str(page.relative_to(ROOT)): re.findall(
        r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S
    )
    for page in PAGES
}


def test_readme_snippets_are_found() -> None:
    assert len(SNIPPETS["README.md"]) >= 3
    assert any("to_gymnasium(venv)" in code for code in SNIPPETS["README.md"])
    assert 'PPO("MlpPolicy", env).learn(200_000)' in SNIPPETS["README.md"][0]


@pytest.mark.parametrize("page", [page for page, snippets in SNIPPETS.items() if snippets])
def test_snippets_run(page: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    # A page's snippets may build on one another; those of the README stand alone as well.
    snippets = SNIPPETS[page]
    scripts = snippets if page == "README.md" else ["\n".join(snippets)]
    for code in scripts:
        script = tmp_path / "snippet.py"
        # The same, but not for minutes.
        code = code.replace('PPO("MlpPolicy", env).', 'PPO("MlpPolicy", env, n_steps=8).')
        code = code.replace("[make_env] * 8", "[make_env] * 2")
        script.write_text(code.replace("learn(200_000)", "learn(1_000)"))
        result = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", SNIPPETS)
def test_links_between_pages_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
