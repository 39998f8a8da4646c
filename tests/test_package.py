"""The wheel, built as for a release, and its contents."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import sb3compat
from sb3compat.errors import install_line
from tests.test_docs import PAGES, quick

ROOT = Path(__file__).parents[1]


def output_of(*command: object, folder: Path, **env: str) -> str:
    """What a command prints, run in a folder; it has to succeed."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(folder: Path, **env: str) -> Path:
    """The wheel, built into that folder."""
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir")
    output_of(*command, folder, ROOT, folder=folder, **env)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The extra dev has both. Without `hatchling` alone, this is to fail and not to be skipped.
    pytest.importorskip("build", reason="builds the wheel")
    return built(tmp_path_factory.mktemp("dist"))


def unpacked(wheel: Path, folder: Path) -> Path:
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def metadata_of(folder: Path) -> Message:
    (path,) = folder.glob("*.dist-info/METADATA")
    return Parser().parsestr(path.read_text(encoding="utf-8"))


def page_of_errors(folder: Path) -> str:
    """Where the exceptions of an unpacked wheel lead."""
    code = "from sb3compat.errors import page_of_errors; print(page_of_errors())"
    return output_of(sys.executable, "-c", code, folder=folder, PYTHONPATH=str(folder)).strip()


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"sb3compat-{sb3compat.__version__}-py3-none-any.whl"
    with ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    expected = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / "sb3compat").rglob("*")
        if path.suffix in (".py", ".css", ".jinja", ".js", ".json", ".toml")
        or path.name == "py.typed"
    }
    output = "sb3compat/conformance/output"
    data = ("page.css", "page.html.jinja", "page.js", "report.schema.json")
    assert {f"{output}/{name}" for name in data} <= set(expected)
    assert "sb3compat/conformance/run/known_upstream.toml" in expected
    assert {"sb3compat/py.typed", "sb3compat/__init__.py", "sb3compat/errors.py"} <= set(expected)
    about = f"sb3compat-{sb3compat.__version__}.dist-info/"
    assert {name: data for name, data in held.items() if not name.startswith(about)} == expected
    assert held[about + "licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert {name.removeprefix(about) for name in held if name.startswith(about)} == {
        "METADATA",
        "RECORD",
        "entry_points.txt",
        "WHEEL",
        "licenses/LICENSE",
    }


def test_metadata_are_those_of_a_build_without_an_address(wheel: Path, tmp_path: Path) -> None:
    about = unpacked(wheel, tmp_path) / f"sb3compat-{sb3compat.__version__}.dist-info"
    metadata = metadata_of(tmp_path)
    assert metadata.get_all("Project-URL") is None
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert page_of_errors(tmp_path) == "None"
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    assert {r.name for r in needed if r.marker is None} == {"gymnasium", "numpy", "cloudpickle"}
    parser = ConfigParser()
    parser.optionxform = str
    parser.read_string((about / "entry_points.txt").read_text())
    assert {name: dict(parser[name]) for name in parser.sections()} == {
        "console_scripts": {"sb3compat": "sb3compat.cli:main"},
        "pytest11": {"sb3compat.pytest_plugin": "sb3compat.pytest_plugin"},
    }


def test_release_has_addresses_and_no_relative_links(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="builds the wheel")
    repository = "https://example.org/owner/sb3compat"
    folder = unpacked(built(tmp_path, SB3COMPAT_REPOSITORY=f"{repository}/"), tmp_path)
    metadata = metadata_of(folder)
    addresses = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert addresses["Source"] == repository
    assert {"Issues", "Documentation", "Changelog"} <= set(addresses)
    assert page_of_errors(folder) == addresses["Errors"]
    assert addresses["Errors"] == f"{repository}/blob/main/docs/reference/errors.md"
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert f"]({repository}/blob/v{sb3compat.__version__}/CONTRIBUTING.md)" in text
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert not re.findall(r"\]\((?!https?:|#)[^)]*\)", outside)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has all dependencies, and not sb3compat."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (packages,) = folder.glob("venv/[lL]ib/**/site-packages")
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    for path in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(path).iterdir():
            if "sb3compat" not in entry.name and entry.suffix != ".pth":
                (dependencies / entry.name).symlink_to(entry)
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"


def test_readme_runs_from_the_wheel_installed_by_the_printed_line(
    wheel: Path, empty: Path, tmp_path: Path
) -> None:
    pytest.importorskip("stable_baselines3", reason="the first snippet trains")
    offline = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    lines = {line for text in texts for line in re.findall(r'pip install "[^"]*\.whl[^"]*"', text)}
    assert lines
    (tmp_path / "dist").mkdir()
    # The last line is what the package's own messages print.
    for line in (*sorted(lines), install_line("conformance")):
        pip, install, what = shlex.split(line)
        assert (pip, install) == ("pip", "install")
        if line in lines:
            assert wheel.name in line
            (tmp_path / what.partition("[")[0]).write_bytes(wheel.read_bytes())
        command = (sys.executable, "-m", "pip", "--python", empty, "install", what)
        output_of(*command, folder=tmp_path, **offline)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert first
    code = f"{quick(first[1])}\nimport sb3compat; print(sb3compat.__file__)"
    file = output_of(empty, "-c", code, folder=elsewhere, PYTHONPATH="").splitlines()[-1]
    assert Path(file).is_relative_to(empty.parents[1])
