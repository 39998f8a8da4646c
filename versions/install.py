"""A virtual environment for each environment of the table, kept in `.venv-pairs/`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from versions.pairs import Environment

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv-pairs"


class NotInstalledError(Exception):
    """What is needed is missing, or could not be installed."""


def constraints(text: str, pins: Mapping[str, str]) -> str:
    """`constraints.txt` with these packages at other versions.

    Args:
        text: The constraints of the newest pair.
        pins: The first two numbers of the version, by package.
    """
    kept = [line for line in text.splitlines() if line.partition("==")[0].strip() not in pins]
    return "\n".join([*kept, *(f"{name}=={pin}.*" for name, pin in pins.items())]) + "\n"


def find_python(version: str, given: Iterable[Path] = ()) -> Path:
    """An interpreter of this version.

    Args:
        version: Its first two numbers.
        given: Interpreters to try before this one and `python3.x` on the path.

    Raises:
        NotInstalledError: If there is none.
    """
    on_path = shutil.which(f"python{version}")
    for candidate in (*given, Path(sys.executable), *([Path(on_path)] if on_path else [])):
        # One that is on the path may be a stub that only says how to install it.
        if _version_of(candidate) == version:
            return candidate
    raise NotInstalledError(
        f"Expected a Python {version}, found none on the path. "
        f"Name one: make pairs ARGS='--python /path/to/python{version}'"
    )


def _version_of(python: Path) -> str | None:
    script = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def install(environment: Environment, pythons: Iterable[Path] = ()) -> Path:
    """Make the environment, or take it as it is if nothing has changed since; its interpreter.

    Raises:
        NotInstalledError: If there is no such Python, or if pip fails.
    """
    folder = FOLDER / environment.name
    python = folder / "bin" / "python"
    stamp, pins = folder / "installed.txt", folder / "constraints.txt"
    wanted = constraints((ROOT / "constraints.txt").read_text(), environment.pins)
    asked = "\n".join([wanted, _requirements(), *environment.packages, *environment.alone])
    if stamp.exists() and stamp.read_text() == asked:
        return python
    base = find_python(environment.python, pythons)
    _call([str(base), "-m", "venv", "--clear", str(folder)])
    pins.write_text(wanted)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
    # What pip builds is built in environments of their own, which read these variables only.
    build = {"PIP_CONSTRAINT": str(pins), "PIP_BUILD_CONSTRAINT": str(pins)}
    here = ["-e", f".[{environment.extra}]"]
    _call([*pip, "-c", str(pins), *here, *environment.packages], **build)
    if environment.alone:
        _call([*pip, "--no-deps", *environment.alone], **build)
    stamp.write_text(asked)
    return python


def _requirements() -> str:
    """What pyproject.toml asks for: the part about the project, with all extras."""
    text = (ROOT / "pyproject.toml").read_text()
    found = re.search(r"^\[project\]\n.*?(?=^\[tool\.)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def _call(command: list[str], **variables: str) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotInstalledError(f"{' '.join(command)}\n{done.stdout.strip()}")
