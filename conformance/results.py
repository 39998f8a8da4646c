"""RESULTS.md, from the results of the runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance.targets import TARGETS
from sb3compat.conformance.output.markdown import escaped, fenced

Found = Mapping[str, Any]

LIBRARIES = {
    "gymnasium": "Gymnasium",
    "sb3": "Stable-Baselines3",
    "others": "Other projects",
    "public_adapters": "Published adapters, ported onto a simulator of ours",
    "adapters": "sb3compat's adapters",
}

_RESULTS = """\
# Results for popular libraries

The failures that `sb3compat check` finds in vector environments that people use, with the
versions named below. This page is generated: `make conformance`. The known failures, each with its
reason and most with a link, are data: [`expected/`](expected). Each was analysed by hand before it
was put there. The environments are in [`targets/`](targets).

A script needs NumPy and the imports of its `make_env`.
"""


def refusal(make_env: Callable[[], Any]) -> str:
    """The message with which the adapter refuses the environment; empty if it does not."""
    from sb3compat.errors import ConversionError

    try:
        env = make_env()
        env.reset()
        env.step([env.action_space.sample() for _ in range(env.num_envs)])
    except ConversionError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def page(found: Mapping[str, Found]) -> str | None:
    """RESULTS.md; None if a target is missing."""
    if found.keys() != TARGETS.keys():
        return None
    parts = [_RESULTS, f"Versions: {_versions(found)}.", "## At a glance", _glance(found)]
    for library, title in LIBRARIES.items():
        entries = list(_entries(library, found))
        if entries:
            parts += [f"## {title}", *entries]
    refused = [name for name in TARGETS if "refused" in found[name]]
    parts.append("## Refused")
    for name in refused:
        parts += [f"{TARGETS[name].about} (`{name}`):", f"> {escaped(found[name]['refused'])}"]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _versions(found: Mapping[str, Found]) -> str:
    known: dict[str, str] = {}
    for data in found.values():
        known |= data.get("versions", {})
    return ", ".join(f"{name} {n}" for name, n in known.items() if n != "not installed")


def _glance(found: Mapping[str, Found]) -> str:
    lines = [
        "| | Passed | Partly exercised | Known failures | Other failures | Not exercised "
        "| Skipped |",
        "|---" * 7 + "|",
    ]
    for library in LIBRARIES:
        for name in _of(library):
            data = found[name]
            if "refused" in data:
                lines.append(f"| {escaped(TARGETS[name].about)} | refused | | | | | |")
                continue
            counts = data["counts"]
            bad = sum(counts.get(status, 0) for status in ("failed", "errored", "xpassed"))
            numbers = [
                counts.get("passed", 0), counts.get("partly_exercised", 0),
                counts.get("xfailed", 0), bad,
                counts.get("not_exercised", 0), counts.get("skipped", 0),
            ]  # fmt: skip
            cells = " | ".join(str(number) if number else "" for number in numbers)
            lines.append(f"| {escaped(TARGETS[name].about)} | {cells} |")
    return "\n".join(lines)


def _of(library: str) -> Iterator[str]:
    return (name for name in TARGETS if name.partition("-")[0] == library)


def _entries(library: str, found: Mapping[str, Found]) -> Iterator[str]:
    """The failures in this library's environments; failures with the same reason are one entry."""
    together: dict[tuple[str, str], list[tuple[str, Found]]] = {}
    for name in _of(library):
        for result in found[name].get("results", ()):
            if result["status"] in ("failed", "errored", "xfailed", "xpassed"):
                _, _, reason = result["message"].rpartition("; expected: ")
                reason = reason if result["status"] == "xfailed" else f"**{result['status']}**"
                together.setdefault((result["check_id"], reason), []).append((name, result))
    for (check_id, reason), results in sorted(together.items()):
        name, result = results[0]
        message = result["message"].rpartition("; expected: ")[0] or result["message"]
        where = [f"- {escaped(TARGETS[other].about)}" for other, _ in results]
        yield f"### `{check_id}` ({result['severity']})"
        yield _linked(reason)
        yield "\n".join(where)
        yield f"{escaped(message)}"
        yield f"Contract: {result['contract']} [Source]({result['source']})"
        script = fenced(_stable(result["reproduction"]), "python")
        yield f"<details>\n<summary>Script</summary>\n\n{script}\n\n</details>"


def _linked(reason: str) -> str:
    return re.sub(r"\((https?://\S+)\)", r"([link](\1))", reason)


def _stable(text: str) -> str:
    """The text without addresses of objects, which differ from run to run."""
    return re.sub(r"0x[0-9a-f]{8,}", "0x…", text)
