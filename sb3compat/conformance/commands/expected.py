"""Expected failures: a TOML file with a table for each check, with `reason` and `link`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sb3compat.conformance.checks.catalogue import find_checks
from sb3compat.conformance.run import toml

_KEYS = {"reason", "link"}


def expected_failures(given: Path | Mapping[str, object]) -> dict[str, str]:
    """The reason, with the link, for each check that is expected to fail.

    Args:
        given: A TOML file, or tables of pyproject.toml.

    Raises:
        ValueError: If the file cannot be read, has another form, or names an unknown check.
        ModuleNotFoundError: On Python 3.10, if `tomli` is missing.
    """
    where: Path | str = given if isinstance(given, Path) else "pyproject.toml"
    try:
        tables = toml.read(given) if isinstance(given, Path) else given
    except OSError as error:
        raise ValueError(
            f"Expected a TOML file with expected failures, got {str(where)!r}: {error.strerror}. "
            "Name a file that exists."
        ) from None
    except ValueError as error:
        raise ValueError(
            f"Expected a TOML file, got {str(where)!r}: {error}. Fix its syntax."
        ) from None
    return {check_id: _reason(where, check_id, table) for check_id, table in tables.items()}


def _reason(path: Path | str, check_id: str, table: object) -> str:
    try:
        find_checks(check_id)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    form = f'[{check_id}] with reason = "…" and, if there is one, link = "…"'
    if not isinstance(table, dict):
        raise ValueError(
            f"{path}: Expected {form}, got {check_id} = {table!r}. Write it as a table."
        )
    strange = sorted(table.keys() - _KEYS)
    if strange:
        raise ValueError(f"{path}: Expected {form}, got the key {strange[0]!r}. Take it out.")
    reason, link = table.get("reason", ""), table.get("link", "")
    if not isinstance(reason, str) or not reason.strip() or not isinstance(link, str):
        raise ValueError(
            f"{path}: Expected {form}, got reason={reason!r}, link={link!r}. Say why it fails."
        )
    return f"{reason} ({link})" if link else reason
