from __future__ import annotations

from pathlib import Path

import pytest

from conformance.targets import TARGETS
from conformance.targets.registry import EXPECTED, reasons
from sb3compat.conformance.run.entry import run
from sb3compat.conformance.run.options import Options
from tests.conformance.kit import TRAINING
from tests.envs import GYMNASIUM

FILES = sorted(EXPECTED.glob("*.toml"))
EXPECTATIONS = {target.name: target.expected() for target in TARGETS.values()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_of_expected_failures_is_read_and_used(path: Path) -> None:
    known = reasons(path)
    assert known
    assert all("(https://" in reason for reason in known.values())
    users = [name for name, expected in EXPECTATIONS.items() if known.items() <= expected.items()]
    assert [name for name in users if f"{name}-".startswith(f"{path.stem}-")]


# `make conformance` runs all of them.
RUN = ("sb3-dummy_rendered", "gymnasium-sync-next_step-cartpole-v1", "gymnasium-native_cartpole")


@pytest.mark.skipif(GYMNASIUM < (1, 4), reason="expected is what the newest versions break")
@pytest.mark.parametrize("name", RUN)
def test_a_target_has_the_expected_failures_only(name: str) -> None:
    if name.startswith("sb3"):
        pytest.importorskip("stable_baselines3")
    target = TARGETS[name]
    defined = target.define()
    options = Options(
        programs=2,
        skip=tuple(TRAINING),
        expected_failures=target.expected(),
        isolate=False,
        make_env=target.source,
        capabilities=target.capabilities,
        options=target.options,
        reference=defined.get("reference"),
    )
    results = run(defined["make_env"], options=options).results
    assert not {r.check_id: r.message for r in results if r.status in ("failed", "errored")}
    found = {r.check_id for r in results if r.status in ("xfailed", "xpassed")}
    assert found == {r.check_id for r in results if r.status == "xfailed"}
    assert found == target.expected().keys()
