"""The last steps of a failing program, in short texts, for a drawing."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from typing import Any, TypeVar

from sb3compat.conformance.findings import plain
from sb3compat.conformance.program.script import PRELUDE, Script
from sb3compat.conformance.recording import RESULTS
from sb3compat.conformance.run.report import Moment
from sb3compat.conformance.subject.subject import Subject

T = TypeVar("T")

_MOST_STEPS = 5
_MOST_ROWS = 6

# The function that sees the actions when a program runs once more.
WATCH = "watch_actions"

_CALL = re.compile(r"([\w, ]+?) = env\.(step|step_wait|reset)\(")
_FLAGS = ("dones", "terminations", "truncations")


class _Watching(ast.NodeTransformer):
    """Puts a call around the actions of each step."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="env"), attr="step" | "step_async"),
                args=[actions],
            ):
                node.args = [ast.Call(ast.Name(WATCH, ast.Load()), [actions], [])]
        return node


def watched(line: str) -> str:
    """The statement with a call that shows the actions to a timeline."""
    return ast.unparse(_Watching().visit(ast.parse(line))) if "env.step" in line else line


class Timeline:
    """Collects the outcome of each step and reset.

    Args:
        subject: The environment under test.
        row: A row to show in any case.
    """

    def __init__(self, subject: Subject, row: int | None) -> None:
        self._subject = subject
        # All rows of a small environment; of a large one the first, and the one in question.
        rows = range(min(subject.num_envs, _MOST_ROWS))
        self._rows = sorted({*rows, *([] if row is None else [row])})
        self._events: list[list[Moment]] = []
        self._actions: object = None

    def watch(self, actions: T) -> T:
        """Copy the actions before the environment gets them."""
        self._actions = PRELUDE["snapshot"](actions)
        return actions

    def note(self, line: str, script: Script) -> None:
        """Note the results of a statement, if it called the environment."""
        found = _CALL.match(line)
        if not found:
            return
        targets, event = found[1].split(", "), "reset" if found[2] == "reset" else "step"
        parts = RESULTS[self._subject.family, event]
        if len(targets) == 1 and (event == "step" or self._subject.family == "vector_env"):
            # One name for the whole tuple.
            targets = [f"{targets[0]}[{k}]" for k in range(len(parts))]
        values = {"actions": self._actions} if event == "step" else {}
        for part, target in zip(parts, targets, strict=False):
            with suppress(Exception):  # the result may be anything
                values[part] = script.value(target)
        self._events.append([self._moment(event, i, values, script.steps) for i in self._rows])

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The last moments, step by step and row by row."""
        return tuple(moment for event in self._events[-_MOST_STEPS:] for moment in event)

    def _moment(self, event: str, i: int, values: dict[str, Any], step: int) -> Moment:
        found: dict[str, Any] = {}
        for part, value in values.items():
            with suppress(Exception):
                if part in ("obs", "actions"):
                    found[part] = PRELUDE["row"](value, i)
                else:
                    found[part] = _of_row(value, i) if isinstance(value, dict) else value[i]
        flags = {name: found[name] for name in _FLAGS if name in found}
        infos, ended = found.get("infos", {}), False
        with suppress(Exception):
            ended = any(map(bool, flags.values()))
        return Moment(
            step,
            i,
            action=plain(found["actions"], 80) if "actions" in found else "",
            observation=plain(found["obs"]) if "obs" in found else "",
            reward=plain(found["rewards"]) if "rewards" in found else "",
            flags=", ".join(f"{name[:-1]}={plain(flag)}" for name, flag in flags.items()),
            # Arrays of infos have no truth value.
            note="" if isinstance(infos, dict | None) and not infos else plain(infos, 240),
            event=event,
            ended=ended,
        )


def _of_row(infos: dict[Any, Any], i: int) -> dict[Any, Any]:
    """The infos of one row, out of the infos of all rows."""
    return {
        key: _of_row(values, i) if isinstance(values, dict) else values[i]
        for key, values in infos.items()
        if not str(key).startswith("_") and infos.get(f"_{key}", {i: True})[i]
    }
