from __future__ import annotations

import json

import pytest

from sb3compat.conformance.output import render
from sb3compat.conformance.output.json import load, schema
from sb3compat.conformance.run.report import SCHEMA_VERSION, Report
from tests.conformance.sample import EMPTY, sample


@pytest.mark.parametrize("report", [sample(), sample(strict=True), EMPTY])
def test_json_is_as_the_schema_has_it(report: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$id"] == f"urn:sb3compat:report:{SCHEMA_VERSION}"
    validator = jsonschema.Draft202012Validator(schema())
    data = json.loads(render(report, "json"))
    validator.validate(data)
    # The schema would see another one, too.
    for strange in ({"more": 1}, {"schema_version": 1}, {"counts": {"lost": 1}}):
        assert not validator.is_valid({**data, **strange})
    for result in data["results"]:
        assert not validator.is_valid({**data, "results": [{**result, "status": "lost"}]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"Expected a report as JSON, got another text \(Expecting prop.*\)\. Write one"),
        ("[]", r"Expected a report with schema_version=2, got schema_version=None"),
        ('{"schema_version": 7}', r"schema_version=2, got schema_version=7"),
        ('{"schema_version": 2}', r"got one that does not fit: 'target'\. Write one"),
    ],
)
def test_what_is_no_report_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(text)
