"""A report with one result of each kind, and the snapshots of how it is shown.

After a change that is meant, `python -m tests.conformance.sample` writes the snapshots anew; read
the diff, and look at the page in a browser, before you commit.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sb3compat.conformance.findings import Finding
from sb3compat.conformance.output import brief, render, terminal
from sb3compat.conformance.run.report import Moment, Report, Result

SNAPSHOTS = Path(__file__).with_name("snapshots")
GUIDE = "https://stable-baselines3.readthedocs.io/en/master/guide/vec_envs.html"

_SCRIPT = '''\
"""terminal_observation_is_last: `terminal_observation` is the last observation.

https://stable-baselines3.readthedocs.io/en/master/guide/vec_envs.html
"""

import numpy as np

from my_package import make_env

env = make_env()
obs = env.reset()
for _ in range(2):
    obs, rewards, dones, infos = env.step(np.full((2,), 0, np.int64))
assert infos[1]["terminal_observation"][0] < 3 & 4, "<b>```"
'''


def _result(check_id: str, group: str, status: str, **particulars: object) -> Result:
    contract = f"What `{check_id}` asks for, as <one> sentence."
    return Result(
        **{
            "check_id": check_id,
            "group": group,
            "status": status,
            "severity": "error",
            "contract": contract,
            "source": GUIDE,
            "family": "vec_env",
            "seconds": 0.25,
            "examples": 25,
            **particulars,
        }
    )


def _moments() -> tuple[Moment, ...]:
    return (
        Moment(0, 0, "[0, 0]", "", "", event="reset"),
        Moment(0, 1, "[1, 0]", "", "", event="reset"),
        Moment(1, 0, "[0, 1]", "1", "done=False", "{speed: 3}", action="0"),
        Moment(1, 1, "[1, 1]", "1", "done=False", "{speed: <3>}", action="1"),
        Moment(2, 0, "[0, 2]", "1", "done=False", "{speed: 3}", action="0"),
        Moment(
            2,
            1,
            "[1, 0]",
            "1",
            "done=True",
            "{terminal_observation: [1, 0]}",
            ended=True,
            action="1",
            varies=("reward", "infos"),
        ),
    )


def sample(*, strict: bool = False) -> Report:
    return Report(
        target="my_package:make_env",
        family="vec_env",
        mode=None,
        num_envs=2,
        seed=0,
        results=(
            _result("reset_returns_obs_only", "reset", "passed"),
            _result("reset_obs_in_space", "reset", "xpassed", message="expected to fail: | known"),
            _result(
                "rewards_float32",
                "step",
                "failed",
                severity="warning",
                message="rewards.dtype=dtype('float64'), but should be float32 [step 1] (not every "
                "time: the same program did not fail in this way when it was run again)",
                finding=Finding("rewards.dtype", "dtype('float64')", "float32", 1),
                timeline=_moments()[:4],
                reproduction="import numpy as np\n",
            ),
            _result(
                "terminal_observation_is_last",
                "episode end",
                "failed",
                message="infos[1]['terminal_observation']=<script>alert(1)</script>, but should be "
                "the last observation | not that of the reset [step 2, row 1]",
                finding=Finding(
                    "infos[1]['terminal_observation']",
                    "<script>alert(1)</script>",
                    "the last observation | not that of the reset",
                    2,
                    1,
                ),
                timeline=_moments(),
                reproduction=_SCRIPT,
            ),
            _result(
                "truncated_flag_present",
                "episode end",
                "xfailed",
                message="infos[0]={}, but should be with 'TimeLimit.truncated' [step 2, row 0]; "
                "expected: known (https://example.org/issues/12)",
                reproduction="import numpy as np\n",
            ),
            _result("rows_independent", "episode end", "not_exercised", message="no episode ended"),
            _result(
                "no_phantom_transition",
                "episode end",
                "partly_exercised",
                message="no single environments & <more>: pass them, --reference package:name",
            ),
            _result(
                "options_reach_env", "seeding", "skipped", message="needs the capability 'options'"
            ),
            _result(
                "get_attr_indices",
                "sub-environments",
                "errored",
                message="env.get_attr('x', [0]) raised ValueError: \x1b[31mno\x1b[0m & never",
                trace='Traceback (most recent call last):\n  File "envs.py", line 3, in get_attr\n'
                "ValueError: \x1b[31mno\x1b[0m & never\n",
                finding=Finding(
                    "env.get_attr('x', [0])",
                    "ValueError: \x1b[31mno\x1b[0m & never",
                    "no exception",
                    0,
                ),
                reproduction="env.get_attr('x', [0])\n",
            ),
            _result(
                "close_idempotent",
                "life",
                "errored",
                message="timeout: no answer within 30 s",
            ),
        ),
        strict=strict,
        versions={"python": "3.11.7", "numpy": "2.4.6"},
        notes=("Something to know & <note>.",),
        seconds=21.34,
    )


EMPTY = replace(sample(), results=(), notes=())


def snapshots() -> dict[str, str]:
    report = sample()
    return {
        "report.txt": render(report, "terminal"),
        "report.colour.txt": terminal.render(report, width=80, colour=True),
        "verbose.txt": terminal.render(report, verbose=True),
        "quiet.txt": brief(report) + "\n",
        "report.json": render(report, "json"),
        "report.junit.xml": render(report, "junit"),
        "report.md": render(report, "markdown"),
        "report.html": render(report, "html"),
        "strict.txt": render(sample(strict=True), "terminal"),
        "strict.junit.xml": render(sample(strict=True), "junit"),
    }


if __name__ == "__main__":
    for name, text in snapshots().items():
        (SNAPSHOTS / name).write_text(text, encoding="utf-8", newline="\n")
        print("wrote", SNAPSHOTS / name)
