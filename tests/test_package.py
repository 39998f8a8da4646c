"""The wheel, built as for a release, and its contents."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import sb3compat
from sb3compat.errors import install_line
from tests.test_docs import PAGES

ROOT = Path(__file__).parents[1]
OLD_PYTHON = sys.version_info < (3, 11)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The extra dev has both. Without `hatchling` alone, this is to fail and not to be skipped.
    pytest.importorskip("build", reason="builds the wheel")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run(
        [*command, str(ROOT)], cwd=out, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.iterdir()
    return path


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


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


def test_metadata_name_versions_and_extras(metadata: Message) -> None:
    assert metadata["Name"] == "sb3compat"
    assert metadata["Version"] == sb3compat.__version__
    assert metadata["License-Expression"] == "MIT"
    python = SpecifierSet(metadata["Requires-Python"])
    assert "3.9.20" not in python
    assert all(f"3.{minor}.0" in python for minor in (10, 11, 12, 13))
    assert {"sb3", "conformance", "dev"} <= set(metadata.get_all("Provides-Extra", []))


def built_with(repository: str, folder: Path) -> Path:
    """The contents of a wheel, built where the address of the repository is known."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    env = {**os.environ, "SB3COMPAT_REPOSITORY": repository}
    subprocess.run([*command, str(ROOT)], cwd=folder, env=env, capture_output=True, check=True)
    (path,) = folder.glob("*.whl")
    return unpacked(path, folder / "unpacked")


def unpacked(wheel: Path, folder: Path) -> Path:
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def page_of_errors(folder: Path) -> str:
    """Where the exceptions of an unpacked wheel lead."""
    code = "from sb3compat.errors import page_of_errors; print(page_of_errors())"
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True,
                          text=True, check=True)  # fmt: skip
    return done.stdout.strip()


RELATIVE = r"\]\((?!https?:|#)[^)]*\)"


def test_release_has_addresses_and_no_relative_links(wheel: Path, tmp_path: Path) -> None:
    repository = "https://example.org/owner/sb3compat"
    folder = built_with(f"{repository}/", tmp_path)
    (path,) = folder.glob("*.dist-info/METADATA")
    metadata = Parser().parsestr(path.read_text(encoding="utf-8"))
    addresses = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert addresses["Source"] == repository
    assert {"Issues", "Documentation", "Changelog"} <= set(addresses)
    assert page_of_errors(folder) == addresses["Errors"]
    assert addresses["Errors"] == f"{repository}/blob/main/docs/reference/errors.md"
    text = metadata.get_payload()
    assert isinstance(text, str)
    tag = f"v{sb3compat.__version__}"
    assert f"]({repository}/blob/{tag}/CONTRIBUTING.md)" in text
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert not re.findall(RELATIVE, outside)


def test_other_builds_name_no_address(metadata: Message, wheel: Path, tmp_path: Path) -> None:
    assert metadata.get_all("Project-URL") is None
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    assert page_of_errors(unpacked(wheel, tmp_path)) == "None"


def test_core_needs_three_libraries_and_extras_the_others(metadata: Message) -> None:
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    core = {r.name: r.specifier for r in needed if r.marker is None}
    assert set(core) == {"gymnasium", "numpy", "cloudpickle"}
    assert {*core["gymnasium"].filter(["0.28.1", "0.29.1", "1.0.0", "1.4.0"])} == {
        "0.29.1", "1.0.0", "1.4.0",
    }  # fmt: skip
    by_extra = {
        extra: {r.name for r in needed if r.marker and r.marker.evaluate({"extra": extra})}
        for extra in ("", "sb3", "conformance")
    }
    assert by_extra == {
        "": set(),
        "sb3": {"stable-baselines3", "rich", "tqdm"},
        "conformance": {"hypothesis", "jinja2", "pytest", "rich"}
        | ({"tomli"} if OLD_PYTHON else set()),
    }


def test_entry_points_are_the_command_and_the_pytest_plugin(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        text = archive.read(
            f"sb3compat-{sb3compat.__version__}.dist-info/entry_points.txt"
        ).decode()
    parser = ConfigParser()
    parser.optionxform = str
    parser.read_string(text)
    assert {name: dict(parser[name]) for name in parser.sections()} == {
        "console_scripts": {"sb3compat": "sb3compat.cli:main"},
        "pytest11": {"sb3compat.pytest_plugin": "sb3compat.pytest_plugin"},
    }


def test_lines_that_install_the_wheel_name_it_and_its_extras(
    wheel: Path, metadata: Message
) -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    lines = {line for text in texts for line in re.findall(r'pip install "[^"]*\.whl[^"]*"', text)}
    assert lines
    for line in (*lines, install_line("conformance")):
        pip, install, target = shlex.split(line)
        path, _, extras = target.rstrip("]").partition("[")
        assert (pip, install, path) in {
            ("pip", "install", f"dist/{wheel.name}"),
            ("pip", "install", "sb3compat"),
        }
        assert set(extras.split(",")) <= {"", *metadata.get_all("Provides-Extra", [])}
