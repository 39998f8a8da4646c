"""Writes docs/reference/checks.md from the checks: `make docs`.

With `--check` it writes nothing, and fails if the page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import FAMILIES
from sb3compat.conformance.subject.capabilities import CAPABILITIES

PAGE = Path(__file__).with_name("reference") / "checks.md"

_HEAD = """\
# The checks

The checks of `sb3compat check`. This page is generated: `make docs`. See
[how to check an environment](../how-to/check-an-environment.md). Each check is tried on
environments that are wrong on purpose: [the kill matrix](kill-matrix.md).

An *error* breaks the contract, and fails the run. A *warning* works, but is hazardous; it fails the
run with `--strict` only. A check is *skipped* if the environment lacks a capability that it needs,
and *not exercised* if no program reached its situation, for example if no episode ended.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, *map(_family, FAMILIES), "## Capabilities"]
    parts.append("\n".join(f"- `{name}`: {text}" for name, text in CAPABILITIES.items()))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _family(family: str) -> str:
    checks = [check for check in checks_of() if check.family == family]
    parts = [f"## {FAMILIES[family]}"]
    for group in dict.fromkeys(check.group for check in checks):
        parts.append(f"### {group[0].upper()}{group[1:]}")
        parts += [_entry(check) for check in checks if check.group == group]
    return "\n\n".join(parts)


def _entry(check: Check) -> str:
    particulars = [check.severity, f"[source]({check.source})"]
    for name, values in (("needs", check.needs), ("after", check.after), ("modes", check.modes)):
        if values:
            particulars.append(f"{name} {', '.join(f'`{value}`' for value in values)}")
    parts = [f"#### `{check.id}`", check.contract, check.explanation, " · ".join(particulars)]
    return "\n\n".join(filter(None, parts))


def write_parts() -> None:
    pass


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8", newline="\n")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        print(f"Expected {PAGE.name} as the checks have it, got another one. Run: make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
