"""The verdicts on the ports: data in `verdicts/`, and what is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.commands.expected import expected_failures
from sb3compat.conformance.run import toml

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "PUBLIC_ADAPTERS.md"
LIBRARY = "public_adapters"

_INTRODUCTION = """\
# Published adapters, and what the kit finds in them

Thirteen published bridges to Stable-Baselines3's `VecEnv`, reimplemented on a small simulator: see
[`specimens/public_adapters/`](specimens/public_adapters). The kit checked each with default
options and without a reference. Every finding was then compared with the original source, and every
known defect of the original was looked up among the findings. This page is generated from
[`verdicts/`](specimens/public_adapters/verdicts):
`python -m conformance.specimens.public_adapters`.

The table names the versions that were read; later versions may differ. A *warning* is in
parentheses. Every finding below is true of the original.
"""


@dataclass(frozen=True)
class Defect:
    """What is wrong with an adapter.

    Attributes:
        what: What it does.
        link: The lines that do it.
        learning: What it does to learning, or to the user.
        checks: The checks that fail on it.
        missed: Why none does.
    """

    what: str
    link: str
    learning: str = ""
    checks: tuple[str, ...] = ()
    missed: str = ""


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a published adapter.

    Attributes:
        name: The module of its port.
        adapter: What it is.
        version: The version that was read.
        source: Its source.
        make: Source that makes the port, of names in its module.
        defects: The main one first.
        separate_rows: Not if its rows are of one world: they end together, or share what they draw
            from.
    """

    name: str
    adapter: str
    version: str
    source: str
    make: str
    defects: tuple[Defect, ...]
    separate_rows: bool = True

    def expected(self) -> dict[str, str]:
        """For each check that fails the reason, with a link."""
        found: dict[str, dict[str, str]] = {}
        for defect in self.defects:
            for check in defect.checks:
                table = found.setdefault(check, {"reason": "", "link": defect.link})
                table["reason"] = f"{table['reason']} {defect.what}".strip()
        return expected_failures(found)


def verdicts() -> list[Verdict]:
    """The verdicts, by name."""
    return [_read(path) for path in sorted((HERE / "verdicts").glob("*.toml"))]


def _read(path: Path) -> Verdict:
    data: dict[str, Any] = toml.read(path)
    defects = [
        Defect(**{**raw, "checks": tuple(raw.get("checks", ()))}) for raw in data.pop("defect")
    ]
    return Verdict(path.stem, **data, defects=tuple(defects))


def page(found: list[Verdict]) -> str:
    """PUBLIC_ADAPTERS.md."""
    warnings = frozenset(check.id for check in checks_of() if check.severity == "warning")
    parts = [_INTRODUCTION.strip(), _glance(found)]
    for verdict in found:
        parts.append(f"## {verdict.adapter}")
        port = f"[port](specimens/public_adapters/{verdict.name}.py)"
        parts.append(f"[Source]({verdict.source}), {verdict.version}; {port}.")
        parts += [_entry(defect, warnings) for defect in verdict.defects]
    return "\n\n".join(parts) + "\n"


def _glance(found: list[Verdict]) -> str:
    lines = ["| Adapter | Version | Defects | Found | Missed | The main one |", "|---" * 6 + "|"]
    for verdict in found:
        defects = verdict.defects
        missed = sum(bool(defect.missed) for defect in defects)
        main = f"`{defects[0].checks[0]}`" if defects[0].checks else "missed"
        cells = [
            verdict.adapter,
            verdict.version,
            len(defects),
            len(defects) - missed,
            missed,
            main,
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _entry(defect: Defect, warnings: frozenset[str]) -> str:
    text = f"- {defect.what} ([source]({defect.link}))"
    if defect.learning:
        text += f" {defect.learning}"
    names = ", ".join(
        f"(`{check}`)" if check in warnings else f"`{check}`" for check in defect.checks
    )
    return f"{text}\n  {'Found by ' + names if names else '**Missed**: ' + defect.missed}"
