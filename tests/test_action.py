"""The action for GitHub: its script runs as a runner would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "action.yml"


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load(ACTION.read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        # A script with an input in it would run whatever the input says.
        assert "${{" not in step["run"]
        for value in step["env"].values():
            name = value.removeprefix("${{ inputs.").removesuffix(" }}")
            assert name in action["inputs"] or value == "${{ github.action_path }}"
    found: list[dict[str, Any]] = action["runs"]["steps"]
    return found


def ran(step: dict[str, Any], folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        **inputs,
    }
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_job_gets_the_exit_code_the_summary_and_the_reports(
    steps: list[dict[str, Any]], tmp_path: Path
) -> None:
    given = {"TARGET": "tests.conformance.tiny:FloatDones", "REPORTS": "some reports"}
    only = "--no-isolate --only dones_bool_array"
    done = ran(steps[-1], tmp_path, **given, ARGUMENTS=only)
    assert done.returncode == 1, done.stderr
    assert "failed: dones_bool_array" in done.stdout
    assert "### `dones_bool_array`: failed" in (tmp_path / "summary.md").read_text()
    reports = tmp_path / "some reports"
    assert {path.name for path in reports.iterdir()} == {"report.json", "report.xml", "report.html"}
    assert json.loads((reports / "report.json").read_text())["target"] == given["TARGET"]


def test_a_job_may_leave_the_target_to_pyproject_toml(
    steps: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.sb3compat.targets."tests.conformance.tiny:TinyVecEnv"]\nno-isolate = true\n'
    )
    given = {"TARGET": "", "REPORTS": "reports"}
    done = ran(steps[-1], tmp_path, **given, ARGUMENTS="--only 'dones_*' --skip 'dones_s*'")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "reports" / "report.json").read_text())["results"]
    assert (result["check_id"], result["status"]) == ("dones_bool_array", "passed")
