"""The pairs of versions that are supported; a module without imports, for tools that have none."""

from __future__ import annotations

# SB3 (None: without it) and Gymnasium. The nightly run tests each; the newest comes last but one.
PAIRS: tuple[tuple[str | None, str], ...] = (
    ("2.6", "1.1"),
    ("2.7", "1.2"),
    ("2.8", "1.2"),
    ("2.9", "1.3"),
    ("2.9", "1.4"),
    (None, "1.4"),
)
