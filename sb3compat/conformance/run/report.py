"""The results of a run, and the report that collects them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from sb3compat.conformance.contract import Check
from sb3compat.conformance.findings import Finding

Status = Literal[
    "passed", "partly_exercised", "failed", "xfailed", "xpassed", "skipped", "not_exercised",
    "errored",
]  # fmt: skip

STATUSES: tuple[Status, ...] = get_args(Status)

# The labels of results for a reader, the worst first.
LABELS = (
    "failed", "errored", "warning", "xpassed", "xfailed", "passed", "partly exercised",
    "not exercised", "skipped",
)  # fmt: skip

# Why a check was not exercised, where it does not tell; the kit's own checks do.
UNREACHED = "no situation that it judges came up"

# The version of `Report.to_dict`; raised when a field changes its meaning or goes.
SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Moment:
    """One row in one step of a timeline, in short texts.

    Attributes:
        step: The number of the step; for a reset, of the step before.
        row: The number of the row.
        observation: The observation of the row.
        reward: The reward of the row.
        flags: The flags of the row: `done=…`, or `termination=…, truncation=…`.
        note: The infos of the row.
        event: `"step"` or `"reset"`.
        ended: Whether an episode ended, by the flags.
        action: The action of the row.
        varies: The names of the `parts` that were others when the same program was run again.
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
    varies: tuple[str, ...] = ()

    @property
    def parts(self) -> dict[str, str]:
        """The texts by name."""
        return {
            "action": self.action,
            "obs": self.observation,
            "reward": self.reward,
            "flags": self.flags,
            "infos": self.note,
        }

    def held_against(self, other: Moment) -> Moment:
        """This moment, with the parts named that another run of the same program has not got."""
        theirs = other.parts
        varies = tuple(name for name, text in self.parts.items() if theirs[name] != text)
        return replace(self, varies=varies)


@dataclass(frozen=True)
class Result:
    """The result of one check.

    Attributes:
        check_id: The id of the check.
        status: `passed`, `partly_exercised` (the part that could be tested holds; the message
            says which part could not, and what to pass), `failed`, `xfailed` (failed, as expected),
            `xpassed` (passed, although expected to fail), `skipped`, `not_exercised` (no program
            reached its situation), or `errored` (the environment raised, hung or died).
        severity: `error` or `warning`.
        message: The value and the value expected, or why there is no verdict.
        contract: The clause of the contract.
        source: Where the clause is written down.
        group: The heading under which the check is listed.
        family: The interface that the check concerns.
        reproduction: A script that shows the failure.
        trace: The traceback of an exception of the environment, or the stack of a process that
            hung or died.
        timeline: The last steps before the failure.
        finding: The value, the value expected, and the place.
        seconds: The time that the check took; None if times are left out.
        examples: The number of programs.
        cause: The id of the check whose failure is the reason for a skip.
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
    seconds: float | None = 0.0
    examples: int = 0
    cause: str = ""

    @classmethod
    def of(cls, check: Check, status: Status, *, message: str = "", cause: str = "") -> Result:
        """A result of this check."""
        return cls(
            check.id,
            status,
            check.severity,
            message,
            check.contract,
            check.source,
            check.group,
            check.family,
            cause=cause,
        )


@dataclass(frozen=True)
class Report:
    """All results of a run.

    Attributes:
        target: The name of the environment.
        family: Its interface: `vec_env` or `vector_env`.
        mode: The autoreset mode of a `VectorEnv`.
        num_envs: The number of rows.
        seed: The seed of the run.
        results: One for each check, in the order of the docs.
        strict: Whether warnings and expected failures that pass count as failures.
        versions: The versions of Python and of the libraries that matter.
        notes: Remarks.
        seconds: The time of the whole run; None if times are left out.
        require_exercised: The least number of checks that must have a verdict.
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
    seconds: float | None = 0.0
    require_exercised: int = 0

    @property
    def ok(self) -> bool:
        """Whether no failure counts, and as many checks were exercised as are required."""
        return self.exercised >= self.require_exercised and not any(self.failures())

    @property
    def exercised(self) -> int:
        """The number of checks with a verdict; one that covers a part of the contract counts."""
        return sum(result.status not in ("skipped", "not_exercised") for result in self.results)

    def failures(self) -> Iterator[Result]:
        """The results that fail the run."""
        for result in self.results:
            counts = result.severity == "error" or self.strict
            failed = counts and result.status in ("failed", "errored")
            if failed or (self.strict and result.status == "xpassed"):
                yield result

    def counts(self) -> dict[str, int]:
        """The number of results of each status."""
        found = Counter(result.status for result in self.results)
        return {status: found[status] for status in STATUSES if found[status]}

    def label(self, result: Result) -> str:
        """The status in words; a failure that does not count is a `warning`."""
        if result.status in ("failed", "errored") and result not in tuple(self.failures()):
            return "warning"
        return result.status.replace("_", " ")

    def summary(self) -> str:
        """The number of results of each kind and the time, in one line."""
        took = "" if self.seconds is None else f" in {self.seconds:.1f} s"
        return self.counted() + took

    def counted(self) -> str:
        """The number of results of each kind."""
        found = Counter(map(self.label, self.results))
        parts = [f"{found[label]} {label}" for label in LABELS if found[label]]
        if self.exercised < self.require_exercised:
            parts.append(f"{self.exercised} exercised where {self.require_exercised} are required")
        return ", ".join(parts or ["no checks"])

    def without_times(self) -> Report:
        """The report without what differs each time: equal runs have equal ones."""
        results = tuple(replace(result, seconds=None) for result in self.results)
        return replace(self, results=results, seconds=None)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dicts and lists, as the JSON schema describes them."""
        plain = asdict(self)
        for part in (plain, *plain["results"]):
            if part["seconds"] is None:
                del part["seconds"]
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "counts": self.counts(),
            **plain,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """The report that `to_dict` turned into this."""
        fields = {"seconds": None, "require_exercised": 0, **data}
        plain = {name: fields[name] for name in cls.__dataclass_fields__}
        results = (_result_of(result) for result in data["results"])
        return cls(**{**plain, "results": tuple(results), "notes": tuple(data["notes"])})

    def __getitem__(self, check_id: str) -> Result:
        for result in self.results:
            if result.check_id == check_id:
                return result
        raise KeyError(check_id)


def _result_of(data: Mapping[str, Any]) -> Result:
    finding = data["finding"]
    timeline = tuple(
        Moment(**{**moment, "varies": tuple(moment.get("varies", ()))})
        for moment in data["timeline"]
    )
    return Result(
        **{"seconds": None, **data, "timeline": timeline, "finding": finding and Finding(**finding)}
    )
