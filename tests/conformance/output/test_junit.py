from __future__ import annotations

from xml.etree import ElementTree

import pytest

from sb3compat.conformance.output import render
from tests.conformance.sample import sample


@pytest.mark.parametrize("strict", [False, True])
def test_junit_counts_what_it_holds(strict: bool) -> None:
    report = sample(strict=strict)
    (suite,) = ElementTree.fromstring(render(report, "junit"))
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests", "")) == len(report.results)
    for kind, counted in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(suite.findall(f"testcase/{kind}")) == int(suite.get(counted, ""))
    failed = {
        c.get("name") for c in cases if c.find("failure") is not None or c.find("error") is not None
    }
    assert failed == {result.check_id for result in report.failures()}
