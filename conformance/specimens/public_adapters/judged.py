"""The verdicts on the ports: data in `verdicts/`, and what is made from it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
CONFORMANCE = HERE.parents[1]
EXPECTED = CONFORMANCE / "expected"
PAGE = CONFORMANCE / "PUBLIC_ADAPTERS.md"
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
        defects: The main one first.
    """

    name: str
    adapter: str
    version: str
    source: str
    defects: tuple[Defect, ...]

    def reasons(self) -> dict[str, tuple[str, str]]:
        """For each check that fails the reason and a link."""
        found: dict[str, tuple[str, str]] = {}
        for defect in self.defects:
            for check in defect.checks:
                before, link = found.get(check, ("", defect.link))
                found[check] = (f"{before} {defect.what}".strip(), link)
        return dict(sorted(found.items()))


def verdicts() -> list[Verdict]:
    """The verdicts, by name."""
    return [_read(path) for path in sorted((HERE / "verdicts").glob("*.toml"))]


def _read(path: Path) -> Verdict:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    defects = [
        Defect(**{**raw, "checks": tuple(raw.get("checks", ()))}) for raw in data.pop("defect")
    ]
    return Verdict(path.stem, **data, defects=tuple(defects))


def expected_failures(verdict: Verdict) -> str:
    """The file in `expected/` for a port."""
    parts = []
    for check, (reason, link) in verdict.reasons().items():
        lines = wrap(reason.replace("\\", "\\\\"), 94)
        text = " \\\n".join(f"    {line}" for line in lines)
        parts.append(f'[{check}]\nreason = """\\\n{text}"""\nlink = "{link}"\n')
    return "\n".join(parts)


def page(found: list[Verdict], warnings: frozenset[str]) -> str:
    """PUBLIC_ADAPTERS.md."""
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
