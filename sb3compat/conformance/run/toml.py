"""TOML, read by Python's own module or, on Python 3.10, by `tomli`."""

from __future__ import annotations

import sys
from pathlib import Path

from sb3compat.errors import install_line


def read(path: Path) -> dict[str, object]:
    """The tables of a TOML file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no TOML.
        ModuleNotFoundError: On Python 3.10, if `tomli` is missing.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "Expected tomli to be installed, which reads TOML on Python 3.10: "
                + install_line("conformance")
            ) from None
    found: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found
