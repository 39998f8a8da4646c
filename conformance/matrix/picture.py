"""The kill matrix, drawn: checks down, mutants across, in the order of the checks."""

from __future__ import annotations

from html import escape
from itertools import groupby

from conformance.matrix.outcomes import BLOCKED, IDLE, KILLED, SKIPPED, Outcome
from conformance.matrix.specimens import Section, Specimen

_CELL = 13
_GAP = 6
_HEADING = 17
_FONT = 10
_LETTER = 0.61 * _FONT  # of a monospaced font
_EDGE = 12
_SLANT = 60  # degrees
_COS, _SIN = 0.5, 0.866
_LEGEND = 30

# A background of its own, so that it can stand on any page.
_STYLE = f"""
svg {{ --back: #ffffff; --text: #1f2328; --faint: #656d76; --band: #f3f5f7; --line: #e3e7eb;
  --aimed: #0550ae; --besides: #d4610b; --bad: #cf222e; --mark: #8c959f; }}
@media (prefers-color-scheme: dark) {{
  svg {{ --back: #0d1117; --text: #e6edf3; --faint: #9198a1; --band: #161b22; --line: #262c36;
    --aimed: #58a6ff; --besides: #f0883e; --bad: #ff7b72; --mark: #6e7681; }}
}}
text {{ font: {_FONT}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: var(--text); }}
.group {{ fill: var(--faint); font-family: system-ui, "DejaVu Sans", sans-serif; }}
.back {{ fill: var(--back); }}
.band {{ fill: var(--band); }}
.lines {{ stroke: var(--line); fill: none; }}
.aimed {{ fill: var(--aimed); }}
.besides {{ fill: none; stroke: var(--besides); stroke-width: 2.5; }}
.survived {{ fill: none; stroke: var(--bad); stroke-width: 2.5; }}
.blocked, .idle {{ fill: none; stroke: var(--mark); }}
"""

_KINDS = {
    "aimed": "kills it, and is meant to",
    "besides": "kills it besides",
    "survived": "is meant to kill it, and does not",
    "blocked": "not run: comes after a check that kills it",
    "idle": "not exercised, or a capability is missing",
}


def picture(section: Section, outcomes: dict[str, Outcome]) -> str:
    """The whole SVG."""
    mutants = section.mutants
    left = _EDGE + max(len(check.id) for check in section.checks) * _LETTER + 8
    longest = max(len(mutant.name) for mutant in mutants) * _LETTER
    top = _EDGE + longest * _SIN + 12
    rows, bottom = _rows(section, top)
    columns, right = _columns(section, mutants, left)
    width = max(right + longest * _COS, 900) + _EDGE
    height = bottom + _LEGEND + _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{escape(section.title)}: which check kills which mutant</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="back" width="{width:.0f}" height="{height:.0f}" rx="6"/>',
        *_frame(section, rows, columns, (left, top, right, bottom)),
        *_cells(section, mutants, outcomes, rows, columns),
        *_legend(_EDGE, bottom + _LEGEND),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _rows(section: Section, top: float) -> tuple[dict[str, float], float]:
    """The upper edge of each row, and the lower one of the last."""
    places = {}
    y = top
    for _, checks in groupby(section.checks, key=lambda check: check.group):
        y += _HEADING
        for check in checks:
            places[check.id] = y
            y += _CELL
    return places, y


def _columns(
    section: Section, mutants: list[Specimen], left: float
) -> tuple[dict[str, float], float]:
    """The left edge of each column, and the right one of the last."""
    group_of = {check.id: check.group for check in section.checks}
    order = list(group_of)
    places = {}
    x = left
    before = None
    for mutant in mutants:
        group = group_of[min(mutant.fails, key=order.index)]
        x += _GAP if before not in (None, group) else 0
        before = group
        places[mutant.name] = x
        x += _CELL
    return places, x


def _frame(
    section: Section,
    rows: dict[str, float],
    columns: dict[str, float],
    edges: tuple[float, float, float, float],
) -> list[str]:
    left, top, right, bottom = edges
    parts = []
    group = ""
    for number, check in enumerate(section.checks):
        y = rows[check.id]
        if check.group != group:
            group = check.group
            parts.append(f'<text class="group" x="{_EDGE}" y="{y - 4:.1f}">{escape(group)}</text>')
        if number % 2 == 0:
            parts.append(
                f'<rect class="band" x="{_EDGE}" y="{y:.1f}" width="{right - _EDGE:.1f}" '
                f'height="{_CELL}"/>'
            )
        parts.append(
            f'<text x="{left - 6:.1f}" y="{y + 10:.1f}" text-anchor="end">{escape(check.id)}</text>'
        )
    lines = " ".join(f"M{x + _CELL / 2:.1f} {top:.1f}V{bottom:.1f}" for x in columns.values())
    parts.append(f'<path class="lines" d="{lines}"/>')
    for name, x in columns.items():
        at = f"{x + _CELL / 2 + 3:.1f} {top - 5:.1f}"
        parts.append(f'<text transform="translate({at}) rotate(-{_SLANT})">{escape(name)}</text>')
    return parts


def _cells(
    section: Section,
    mutants: list[Specimen],
    outcomes: dict[str, Outcome],
    rows: dict[str, float],
    columns: dict[str, float],
) -> list[str]:
    parts = []
    plain: dict[str, list[str]] = {"blocked": [], "idle": []}
    for mutant in mutants:
        for check in section.checks:
            kind = _kind(mutant, check.id, outcomes[mutant.name].words[check.id])
            mark = _mark(kind, columns[mutant.name], rows[check.id])
            if kind in plain:
                plain[kind].append(mark)
            elif kind:
                title = f"{check.id} {_KINDS[kind]}: {mutant.name}"
                parts.append(f'<path class="{kind}" d="{mark}"><title>{title}</title></path>')
    return [
        *(f'<path class="{kind}" d="{" ".join(marks)}"/>' for kind, marks in plain.items()),
        *parts,
    ]


def _kind(mutant: Specimen, check_id: str, word: str) -> str:
    if check_id in mutant.fails:
        return "aimed" if word == KILLED else "survived"
    return {KILLED: "besides", BLOCKED: "blocked", SKIPPED: "idle", IDLE: "idle"}.get(word, "")


def _mark(kind: str, x: float, y: float) -> str:
    """The path of a mark in the cell whose corner is there."""
    if kind == "aimed":
        return f"M{x + 1:.1f} {y + 1:.1f}h11v11h-11z"
    if kind == "besides":
        return f"M{x + 2.5:.1f} {y + 2.5:.1f}h8v8h-8z"
    if kind == "survived":
        return f"M{x + 2.5:.1f} {y + 2.5:.1f}l8 8m0 -8l-8 8"
    if kind == "blocked":
        return f"M{x + 4.5:.1f} {y + 6.5:.1f}h4"
    return f"M{x + 5.5:.1f} {y + 6.5:.1f}a1 1 0 1 0 2 0a1 1 0 1 0 -2 0"


def _legend(x: float, y: float) -> list[str]:
    parts = []
    for kind, words in _KINDS.items():
        parts.append(f'<path class="{kind}" d="{_mark(kind, x, y - 10)}"/>')
        parts.append(f'<text class="group" x="{x + 16:.1f}" y="{y:.1f}">{words}</text>')
        x += 16 + len(words) * 5.3 + 22
    return parts
