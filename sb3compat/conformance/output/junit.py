"""The report as JUnit XML, which CI servers read."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from sb3compat.conformance.output import headline
from sb3compat.conformance.run.report import Report, Result

# What XML 1.0 does not allow, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """One test suite, with a test case for each check.

    What fails the run is a failure, or an error where the environment raised, hung or died. What
    was not exercised is skipped, and so is what failed as expected. A warning that does not count,
    and what a partly exercised check misses, is in the `system-out` of a test case that passes.
    """
    suite = ElementTree.Element(
        "testsuite", {"name": "sb3compat", "tests": str(len(report.results))}
    )
    suite.attrib |= _time(report.seconds)
    properties = ElementTree.SubElement(suite, "properties")
    about = {"target": report.target, "about": headline(report), **report.versions}
    for name, value in about.items():
        ElementTree.SubElement(properties, "property", name=name, value=_legal(value))
    counted = {"failure": 0, "error": 0, "skipped": 0}
    for result in report.results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"sb3compat.{result.family}.{result.group.replace(' ', '_')}",
            name=result.check_id,
        )
        case.attrib |= _time(result.seconds)
        kind = _kind(report, result)
        if kind in counted:
            counted[kind] += 1
            outcome = ElementTree.SubElement(case, kind, message=_legal(_message(result)))
            if kind != "skipped":
                outcome.set("type", result.severity)
                outcome.text = _legal(_text(result))
        elif kind:
            ElementTree.SubElement(case, kind).text = _legal(
                f"{report.label(result)}: {_text(result)}"
            )
    suite.set("failures", str(counted["failure"]))
    suite.set("errors", str(counted["error"]))
    suite.set("skipped", str(counted["skipped"]))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


def _time(seconds: float | None) -> dict[str, str]:
    """The attribute with a time; none if times are left out."""
    return {} if seconds is None else {"time": f"{seconds:.3f}"}


def _kind(report: Report, result: Result) -> str:
    """The element that says how a test case went; none if it passed."""
    if result.status in ("skipped", "not_exercised", "xfailed"):
        return "skipped"
    if result in tuple(report.failures()):
        return "error" if result.status == "errored" else "failure"
    return "" if result.status == "passed" else "system-out"


def _message(result: Result) -> str:
    if result.status in ("not_exercised", "xfailed"):
        return f"{result.status.replace('_', ' ')}: {result.message}"
    return result.message


def _text(result: Result) -> str:
    parts = [result.message, f"{result.contract}\n{result.source}"]
    return "\n\n".join(filter(None, [*parts, result.trace, result.reproduction]))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
