"""`sb3compat list`."""

from __future__ import annotations

from argparse import Namespace

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.commands.usage import CLEAN, complain
from sb3compat.conformance.findings import FAMILIES, CheckError
from sb3compat.conformance.subject.capabilities import CAPABILITIES


def command(given: Namespace) -> int:
    """List the checks, and the capabilities that some of them need."""
    try:
        known = checks_of(given.family)
    except CheckError as error:
        return complain(str(error))
    width = max(len(check.id) for check in known)
    heading: tuple[str, str] | None = None
    for check in known:
        if heading is None or check.family != heading[0]:
            print(f"{FAMILIES[check.family]}")
        if (check.family, check.group) != heading:
            print(f"\n  {check.group}")
        heading = (check.family, check.group)
        print(f"    {check.severity:<8} {check.id:<{width}}  {check.contract}")
    print("\nCapabilities, which some of them need")
    for name, meaning in CAPABILITIES.items():
        print(f"    {name:<15} {meaning}")
    print(f"\n{len(known)} checks. More on one of them: sb3compat explain ID")
    return CLEAN
