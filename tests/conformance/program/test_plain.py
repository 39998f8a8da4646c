from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from sb3compat.conformance.program.plain import Plain, without_helpers
from sb3compat.conformance.program.script import PRELUDE

OBS = np.array([[0, 1], [2, 3]])
NAN = np.array([np.nan])
REWRITTEN = {
    "equal(row(obs, 1), row(other, 1))": "np.array_equal(obs[1], other[1])",
    "0 < k and not equal(obs, row([obs], 0))": "0 < k and (not np.array_equal(obs, [obs][0]))",
    "not overlap(row(obs, 0), obs)": "not np.shares_memory(obs[0], obs)",
    "inside(space, row(obs, 1))": "space.contains(obs[1])",
    "equal(infos[0], row(obs, 1)['a'])": None,
    # Here the first part alone says that it fails.
    "k == 0 and equal(nested, row(nested, 0))": None,
    "k == 0 and equal(nan, nan)": None,
    "k == 0 and equal(words, words)": None,
    "k == 0 and overlap(nested, nested)": None,
    "k == 0 and inside(narrow, double)": None,
    "k == 0 and inside(space, obs[1], bounded=False)": None,
    "k == 0 and all(equal(row(obs, 0), 1) for obs in [nested])": None,
    "equal(row(nested['a'], 0), 1)": "equal(nested['a'][0], 1)",
    "inside(space, obs)": "space.contains(obs)",
    "not inside(narrow, double)": None,  # of another dtype, which `contains` does not forgive
    "inside(both, nested)": None,
    "equal(count(), row(obs, 0))": "equal(count(), obs[0])",
    "k == 0": None,
}


@pytest.mark.parametrize("condition", REWRITTEN)
def test_arrays_need_no_helpers(condition: str) -> None:
    calls: list[int] = []

    def count() -> int:
        calls.append(1)
        return -1

    values = {
        **PRELUDE,
        "np": np,
        "obs": OBS,
        "other": OBS + 1,
        "nested": {"a": OBS},
        "nan": NAN,
        "k": 1,
        "infos": [{}, {}],
        "space": spaces.Box(0, 1, (2,), np.int64),
        "narrow": spaces.Box(0, 1, (2,), np.float32),
        "double": np.array([0.0, 1.0]),
        "both": spaces.Dict(a=spaces.Box(0, 1, (2,), np.int64)),
        "words": np.array(["a", "b"]),
        "count": count,
    }
    line = f"assert {condition}, 'row(obs, 1)=1, but should be row(obs, 0)'"
    found = without_helpers(line, lambda expression: eval(expression, values))
    expected = REWRITTEN[condition]
    if expected is None:
        assert found == Plain(line)
        return
    changed, _, message = found.line.partition(", '")
    assert changed == f"assert {expected}"
    assert message == found.told("row(obs, 1)=1, but should be row(obs, 0)") + "'"
    for k in (0, 1):
        assert (f"obs[{k}]" in message) == (f"row(obs, {k})" in condition)
    # Once to see that it fails still; arguments that do something are left alone.
    assert len(calls) == condition.count("count()")


@pytest.mark.parametrize(
    "line", ["env.step(row(obs, 1))", "try:\n    assert row(obs, 1)\nfinally: 0"]
)
def test_other_statements_stay_as_they_are(line: str) -> None:
    def value(expression: str) -> Any:
        raise AssertionError(expression)

    assert without_helpers(line, value) == Plain(line)
