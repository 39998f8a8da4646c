"""What a test has opened is closed after it."""

from __future__ import annotations

from typing import Any, TypeVar

Env = TypeVar("Env")

OPENED: list[Any] = []


def closed_later(env: Env) -> Env:
    """The environment, which is closed after the test."""
    OPENED.append(env)
    return env


def close_all(but: int = 0) -> None:
    """Close environments, each twice; those that were opened first may be left."""
    while len(OPENED) > but:
        env = OPENED.pop()
        env.close()
        env.close()
