"""What a run of the kit has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Finding

Status = Literal["passed", "failed", "xfailed", "xpassed", "skipped", "not_exercised", "errored"]

STATUSES: tuple[Status, ...] = (
    "passed", "failed", "xfailed", "xpassed", "skipped", "not_exercised", "errored",
)  # fmt: skip


# What a reader is told of a result, the worst first.
LABELS = (
    "failed", "errored", "warning", "xpassed", "xfailed", "passed", "not exercised", "skipped",
)  # fmt: skip

# Of what `Report.to_dict` returns; raised when a field changes its meaning or goes.
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Moment:
    """One row in one step of a timeline, in short texts.

    Attributes:
        step: The number of the step; that of the step before, for a reset.
        row: The number of the row.
        observation: What the step, or the reset, returned for the row.
        reward: Likewise.
        flags: Likewise; `done=…`, or `termination=…, truncation=…`.
        note: The infos of the row.
        event: `"step"` or `"reset"`.
        ended: Whether an episode ended there, by the flags.
        action: What the row was to do.
    """

    step: int
    row: int
    observation: str
    reward: str
    flags: str
    note: str = ""
    event: str = "step"
    ended: bool = False
    action: str = ""


@dataclass(frozen=True)
class Result:
    """What one check has found.

    Attributes:
        check_id: The id of the check.
        status: `passed`, `failed`, `xfailed` (failed, as expected), `xpassed` (passed, although
            expected to fail), `skipped`, `not_exercised` (what it is about did not happen), or
            `errored` (the environment raised, hung or died).
        severity: `error` or `warning`.
        message: What came and what should have come, or why there is no verdict.
        contract: What is asked for.
        source: Where that is written down.
        group: The heading under which the check is listed.
        family: Which of the two interfaces it is about.
        reproduction: A script that shows the failure.
        trace: The traceback of an exception that the environment raised, or the calls in which it
            hung or died.
        timeline: The last steps before the failure.
        finding: What came, what should have come, and where.
        seconds: How long the check took.
        examples: How many programs were run.
    """

    check_id: str
    status: Status
    severity: str
    message: str = ""
    contract: str = ""
    source: str = ""
    group: str = ""
    family: str = ""
    reproduction: str = ""
    trace: str = ""
    timeline: tuple[Moment, ...] = ()
    finding: Finding | None = None
    seconds: float = 0.0
    examples: int = 0

    @classmethod
    def of(
        cls,
        check: Check,
        status: Status,
        *,
        message: str = "",
        reproduction: str = "",
        trace: str = "",
        timeline: tuple[Moment, ...] = (),
        finding: Finding | None = None,
        seconds: float = 0.0,
        examples: int = 0,
    ) -> Result:
        """A result of this check; the other arguments as for `Result`."""
        return cls(
            check_id=check.id,
            status=status,
            severity=check.severity,
            contract=check.contract,
            source=check.source,
            group=check.group,
            family=check.family,
            message=message,
            reproduction=reproduction,
            trace=trace,
            timeline=timeline,
            finding=finding,
            seconds=seconds,
            examples=examples,
        )


@dataclass(frozen=True)
class Report:
    """All results of a run.

    Attributes:
        target: What was checked, in words.
        family: Which interface it has: `vec_env` or `vector_env`.
        mode: The autoreset mode of a `VectorEnv`.
        num_envs: The number of rows.
        seed: The seed of the run.
        results: One for each check, in the order of the docs.
        strict: Whether warnings and expected failures that pass count as failures.
        versions: Those of Python and the libraries that matter.
        notes: What else there is to say.
        seconds: How long it all took.
    """

    target: str
    family: str
    mode: str | None
    num_envs: int
    seed: int
    results: tuple[Result, ...]
    strict: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing has failed that counts."""
        return not any(True for _ in self.failures())

    def failures(self) -> Iterator[Result]:
        """The results that fail the run."""
        for result in self.results:
            counts = result.severity == "error" or self.strict
            failed = counts and result.status in ("failed", "errored")
            if failed or (self.strict and result.status == "xpassed"):
                yield result

    def counts(self) -> dict[str, int]:
        """How many results there are of each status."""
        found = Counter(result.status for result in self.results)
        return {status: found[status] for status in STATUSES if found[status]}

    def label(self, result: Result) -> str:
        """The status in words; a failure that does not count is a `warning`."""
        if result.status in ("failed", "errored") and result not in tuple(self.failures()):
            return "warning"
        return result.status.replace("_", " ")

    def summary(self) -> str:
        """One line: how many results there are of each kind."""
        found = Counter(map(self.label, self.results))
        parts = [f"{found[label]} {label}" for label in LABELS if found[label]]
        return ", ".join(parts or ["no checks"]) + f" in {self.seconds:.1f} s"

    def to_dict(self) -> dict[str, Any]:
        """As plain dicts and lists, as the JSON schema has it."""
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "counts": self.counts(),
            **asdict(self),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The report of which this is the `to_dict`."""
        plain = {name: data[name] for name in cls.__dataclass_fields__}
        results = (_result_of(result) for result in data["results"])
        return cls(**{**plain, "results": tuple(results), "notes": tuple(data["notes"])})

    def __getitem__(self, check_id: str) -> Result:
        for result in self.results:
            if result.check_id == check_id:
                return result
        raise KeyError(check_id)


def _result_of(data: Mapping[str, Any]) -> Result:
    finding = data["finding"]
    timeline = tuple(Moment(**moment) for moment in data["timeline"])
    return Result(**{**data, "timeline": timeline, "finding": finding and Finding(**finding)})
