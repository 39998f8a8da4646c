"""The end of an episode, drawn: one lane for each row, one column for each step."""

from __future__ import annotations

import re
from html import escape

from sb3compat.conformance.findings import Finding
from sb3compat.conformance.run.report import Moment, Result

# The part of a moment that an expression is about.
_PART = {
    "obs": "obs",
    "rewards": "reward",
    "dones": "flags",
    "terminations": "flags",
    "truncations": "flags",
    "infos": "infos",
    "actions": "action",
}
_LEGEND = (
    "A ring is a reset, a dot a step, a bar the end of an episode by the flags. What is wrong is "
    "outlined."
)


def finding(result: Result) -> str:
    """What came and what should have come, or nothing if that is not known."""
    found = result.finding
    if found is None:
        return ""
    if result.status == "errored":
        came = said = f"{found.what} raised {found.got}"
    else:
        came = f"{found.what} = {found.got}"
        said = f"{found.what}={found.got}, but should be {found.should} [{found.place}]"
    # What the message says beyond this: that it does not happen every time, for instance.
    rest = result.message.removeprefix(said).strip()
    more = f"<p>{escape(rest)}</p>" if rest else ""
    return (
        '<table class="finding"><tbody>\n'
        f'<tr class="came"><th scope="row">Came</th><td class="value">{escape(came)} '
        f"[{found.place}]</td></tr>\n"
        f'<tr class="should"><th scope="row">Should be</th>'
        f"<td>{escape(found.should)}</td></tr>\n</tbody></table>{more}"
    )


def timeline(result: Result) -> str:
    """The last steps before a failure as a table; nothing if there were none."""
    events = _events(result.timeline)
    if not events:
        return ""
    found = result.finding
    here = [_is_here(event[0], found) for event in events]
    heads = "".join(
        f'<th scope="col"{" class=here" if is_here else ""}>{_title(event[0])}</th>'
        for event, is_here in zip(events, here, strict=True)
    )
    rows = []
    for k, first in enumerate(events[0]):
        concerned = found is None or found.row in (None, first.row)
        cells = "".join(
            _cell(event[k], found if is_here and concerned else None)
            for event, is_here in zip(events, here, strict=True)
        )
        kind = "" if concerned else ' class="other"'
        rows.append(f'<tr{kind}><th scope="row">row&nbsp;{first.row}</th>{cells}</tr>\n')
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Timeline">'
        f'<table class="timeline"><thead><tr><td></td>{heads}</tr></thead><tbody>\n'
        f'{"".join(rows)}</tbody></table></div>\n<p class="legend">{_LEGEND}</p>'
    )


def _events(moments: tuple[Moment, ...]) -> list[list[Moment]]:
    """The moments of each step or reset, all with the same rows."""
    events: list[list[Moment]] = []
    for moment in moments:
        if not events or moment.row <= events[-1][-1].row:
            events.append([])
        events[-1].append(moment)
    return events


def _title(moment: Moment) -> str:
    return "reset" if moment.event == "reset" else f"step&nbsp;{moment.step}"


def _is_here(moment: Moment, found: Finding | None) -> bool:
    if found is None or moment.step != found.step:
        return False
    return moment.event == "step" or found.step == 0


def _cell(moment: Moment, found: Finding | None) -> str:
    parts = {
        "action": moment.action,
        "obs": moment.observation,
        "reward": moment.reward,
        "flags": moment.flags,
        "infos": moment.note,
    }
    wrong = _part_of(found.what) if found else ""
    lines = []
    for name, text in parts.items():
        if name == wrong and found is not None:
            expected = f'<dd class="expected">should be {escape(found.should)}</dd>'
            text = text or "–"  # noqa: RUF001  (an en dash stands for nothing)
            lines.append(
                f'<div class="wrong"><dt>{name}</dt><dd>{escape(text)}</dd>{expected}</div>'
            )
        elif text:
            lines.append(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>")
    kind = " ".join(
        word for word, holds in ((moment.event, True), ("ended", moment.ended)) if holds
    )
    end = "<b>end</b><i></i>" if moment.ended else ""
    whole = " wrong" if found is not None and wrong not in parts else ""
    return f'<td class="{kind}{whole}"><div class="lane">{end}</div><dl>{"".join(lines)}</dl></td>'


def _part_of(what: str) -> str:
    """Which part of a moment an expression is about; empty if none, or one of several."""
    found = {_PART[name] for name in re.findall(r"[a-z_]+", what) if name in _PART}
    return found.pop() if len(found) == 1 else ""
