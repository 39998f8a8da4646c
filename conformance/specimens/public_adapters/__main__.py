"""Write the expected failures of the ports, and PUBLIC_ADAPTERS.md, from the verdicts."""

from __future__ import annotations

from conformance.specimens.public_adapters.judged import (
    EXPECTED,
    LIBRARY,
    PAGE,
    expected_failures,
    page,
    verdicts,
)
from sb3compat.conformance.checks.catalogue import checks_of


def files() -> dict[str, str]:
    """The text of each file that is made, by its path in `conformance/`."""
    found = verdicts()
    warnings = frozenset(check.id for check in checks_of() if check.severity == "warning")
    made = {PAGE.name: page(found, warnings)}
    for verdict in found:
        name = f"{LIBRARY}-{verdict.name}.toml"
        made[f"{EXPECTED.name}/{name}"] = expected_failures(verdict)
    return made


if __name__ == "__main__":
    for path, text in files().items():
        (PAGE.parent / path).write_text(text, encoding="utf-8", newline="\n")
