"""Runs of a few checks on the tiny environments."""

from __future__ import annotations

from typing import Any

from sb3compat.conformance import Report, check_vec_env
from sb3compat.conformance.run.report import Result

IFF_DONE = "terminal_observation_iff_done"
FEW = (
    "reset_returns_obs_only", "step_returns_four", "dones_shape", "dones_bool_array", IFF_DONE,
)  # fmt: skip
# A check of a user, which the environment `Generous` does not pass.
OWN_CHECK = '''
from sb3compat.conformance import check, expect

@check("vec_env", severity="error", source="https://example.org")
def rewards_are_one(record):
    """Each reward is 1."""
    for step in record.steps:
        yield expect(f"({{0}} == {limit()}).all()", step.rewards, should="1")

def limit():
    return 1
'''


def checked(factory: Any, *, only: tuple[str, ...] = FEW, **options: Any) -> Report:
    return check_vec_env(factory, on_fail=None, only=only, **options)


def here(factory: Any, **options: Any) -> Report:
    """The same in this process, which is quicker."""
    return checked(factory, isolate=False, **options)


def statuses(report: Report) -> list[str]:
    return [result.status for result in report.results]


def lost(report: Report) -> list[Result]:
    """The results of checks that the environment did not survive."""
    return [result for result in report.results if result.status == "errored"]
