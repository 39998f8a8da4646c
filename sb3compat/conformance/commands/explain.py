"""`sb3compat explain`."""

from __future__ import annotations

import textwrap
from argparse import Namespace

from sb3compat.conformance.checks.catalogue import find_checks
from sb3compat.conformance.commands.usage import CLEAN, complain
from sb3compat.conformance.contract import Check, Severity
from sb3compat.conformance.findings import FAMILIES
from sb3compat.conformance.subject.capabilities import CAPABILITIES

_SEVERITIES: dict[Severity, str] = {
    "error": "breaks the contract",
    "warning": "works, but is risky",
}


def command(given: Namespace) -> int:
    """Explain the checks with this id."""
    try:
        found = find_checks(given.id)
    except ValueError as error:
        return complain(str(error))
    print(("\n\n" + "-" * 40 + "\n\n").join(map(_explained, found)))
    return CLEAN


def _explained(check: Check) -> str:
    particulars = {
        "Interface": f"{FAMILIES[check.family]}, {check.group}",
        "Severity": f"{check.severity}: {_SEVERITIES[check.severity]}",
        "Source": check.source,
        "Modes": ", ".join(check.modes),
        "Needs": "; ".join(f"{need} ({CAPABILITIES.get(need, '')})" for need in check.needs),
        "After": ", ".join(check.after),
    }
    lines = [f"{name + ':':<11}{value}" for name, value in particulars.items() if value]
    parts = [check.id, textwrap.fill(check.contract, 88), check.explanation, "\n".join(lines)]
    return "\n\n".join(filter(None, parts))
