"""The known failures of other libraries, which `known_upstream.toml` has by class and version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sb3compat.conformance.run import toml, versions
from sb3compat.conformance.subject.subject import Subject

FILE = Path(__file__).with_name("known_upstream.toml")


@dataclass(frozen=True)
class Known:
    """A check that classes of a library are known to fail.

    Attributes:
        distribution: The library.
        check: The id of the check.
        classes: Their names, with their modules.
        reason: What is wrong.
        link: Where that is written down.
        since: The first version with it; empty for all.
        before: The first version without it; empty if there is none.
        modes: The autoreset modes in which it fails; empty for all.
    """

    distribution: str
    check: str
    classes: Sequence[str]
    reason: str
    link: str
    since: str = ""
    before: str = ""
    modes: Sequence[str] = ()

    def concerns(self, classes: Iterable[str], mode: str | None, installed: str) -> bool:
        """Whether an environment of these classes, in this mode and version, fails the check."""
        return (
            not set(self.classes).isdisjoint(classes)
            and mode in (self.modes or (mode,))
            and release(self.since) <= release(installed)
            and (not self.before or release(installed) < release(self.before))
        )


def known_failures(subject: Subject) -> dict[str, str]:
    """The reason, with the link, for each check that this environment is known to fail.

    Raises:
        ModuleNotFoundError: On Python 3.10, if `tomli` is missing.
    """
    found = {}
    for known in read(toml.read(FILE)):
        number = versions.installed(known.distribution)
        if number and known.concerns(subject.classes, subject.mode, number):
            found[known.check] = f"{known.reason} ({known.link})"
    return found


def read(tables: Mapping[str, Any]) -> list[Known]:
    """The entries of `known_upstream.toml`."""
    return [
        Known(distribution, **table)
        for distribution, entries in tables.items()
        for table in entries
    ]


def release(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with: `1.3.0a1` is (1, 3, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()
