"""The report as JSON, as `report.schema.json` has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sb3compat.conformance.run.report import SCHEMA_VERSION, Report

_WRITE = "Write one with: sb3compat check TARGET --json FILE"
_SCHEMA = Path(__file__).with_name("report.schema.json")


def render(report: Report) -> str:
    """The report as a JSON object."""
    return json.dumps(report.to_dict(), indent=2) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of a report."""
    found: dict[str, Any] = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return found


def load(text: str) -> Report:
    """The report that was written as this JSON.

    Raises:
        ValueError: If it is no report, or one of another version of the schema.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"Expected a report as JSON, got another text ({error}). {_WRITE}"
        ) from None
    found = data.get("schema_version") if isinstance(data, dict) else None
    if found != SCHEMA_VERSION:
        raise ValueError(
            f"Expected a report with schema_version={SCHEMA_VERSION}, got "
            f"schema_version={found!r}. {_WRITE}"
        )
    try:
        return Report.from_dict(data)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"Expected a report as report.schema.json has it, got one that does not fit: {error}. "
            f"{_WRITE}"
        ) from None
