"""The reports: their scripts and patches, and what the scripts do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Run all scripts in one process, as most of their time goes to imports.
_RUN = """
import json, sys
said = []
for script in json.loads(sys.stdin.read()):
    try:
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
        said.append("")
    except BaseException as error:
        said.append(f"{type(error).__name__}: {error}")
print("said:" + json.dumps(said))
"""


@dataclass(frozen=True)
class Defect:
    """A section of a page.

    Attributes:
        title: Its heading.
        script: Ends in an AssertionError where the defect is.
        patches: The diffs of this section, and of those that refer to a later one.
    """

    title: str
    script: str
    patches: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A report on a library.

    Attributes:
        name: The name of the file, without its ending.
        package: The module that it is about.
        version: The version that it is about; empty if the scripts need no package.
        defects: Its sections.
    """

    name: str
    package: str
    version: str
    defects: tuple[Defect, ...]

    def installed(self) -> bool:
        """Whether the scripts can run: this version is there, or a port stands for it."""
        scripts = "".join(defect.script for defect in self.defects)
        if "public_adapters" in scripts and self.package != "envpool":
            return find_spec("stable_baselines3") is not None
        try:
            return version(self.package) == self.version
        except PackageNotFoundError:
            return False


def pages() -> list[Page]:
    """All reports."""
    return [_page(path) for path in sorted(HERE.glob("*.md")) if path.name != "README.md"]


def _page(path: Path) -> Page:
    head, *sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = re.search(r"^Package: `(\w+)`(?: ([\d.]*\d))?", head, re.MULTILINE)
    assert found, f"{path.name}: no line with the package"
    defects = [
        Defect(text.partition("\n")[0], script, tuple(_blocks(text, "diff")))
        for text in sections
        for script in _blocks(text, "python")
    ]
    return Page(path.stem, found[1], found[2] or "", tuple(defects))


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def said_by(scripts: Iterable[str], path: Iterable[str] = ()) -> list[str]:
    """What each script ends with: the type and the text of its exception, or nothing."""
    places = os.pathsep.join([*path, str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _RUN],
        input=json.dumps(list(scripts)),
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        timeout=300,
    )
    line = next((row for row in done.stdout.splitlines() if row.startswith("said:")), None)
    if line is None:
        raise RuntimeError(f"The scripts have ended their process: {done.stderr[-2000:]}")
    said: list[str] = json.loads(line.removeprefix("said:"))
    return said


def patched(page: Page, folder: Path) -> bool:
    """Copy the package into the folder, and apply the page's patches; whether all fit."""
    spec = find_spec(page.package)
    if spec is None or not spec.submodule_search_locations:
        return False
    home = Path(spec.submodule_search_locations[0])
    # Links save copying gigabytes; what is patched becomes a file of its own.
    shutil.copytree(home, folder / home.name, copy_function=_link)
    for beside in home.parent.glob(f"{home.name}.libs"):
        (folder / beside.name).symlink_to(beside)
    for patch in dict.fromkeys(patch for defect in page.defects for patch in defect.patches):
        for name in re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE):
            if not (folder / name).exists():
                return False
            source = (folder / name).resolve()
            (folder / name).unlink()
            shutil.copyfile(source, folder / name)
        command = ["patch", "-p1", "--quiet", "-d", str(folder)]
        if subprocess.run(command, input=patch, text=True, check=False).returncode:
            return False
    return True


def _link(source: str, target: str) -> str:
    Path(target).symlink_to(source)
    return target
