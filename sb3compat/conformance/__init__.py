"""The conformance kit: does a vector environment keep its contract?

`check_vec_env` checks a Stable-Baselines3 `VecEnv`, `check_vector_env` a Gymnasium `VectorEnv`.
They draw programs, compare the results with the contract, and shrink a failure to a script of a few
lines. Needs Hypothesis: `pip install "sb3compat[conformance]"`.

The modules and packages, from the lowest layer to the highest. Each imports only from lower layers
and from its own:

- `findings`: findings and errors.
- `program`: statements that run as they are written down, and the scripts made of them.
- `subject`: facts about the environment under test.
- `play`: one run of a check that runs statements of its own.
- `values`: parts of results, with their source in scripts.
- `record`: a program that was run, with all arguments and results.
- `recording`: runs a program.
- `rows`: a record as the episodes of its rows.
- `programs`: the programs to record, drawn at random and steered to ends of episodes.
- `variants`: a second run of a program, with one difference.
- `replays`: a second run of a row, by its single environment.
- `judge`: clauses of the contract, judged on records.
- `render`: the script that reproduces a finding.
- `scene`: what a check gets that calls the environment itself.
- `shrink`: the smallest program that shows it.
- `contract`: what a check is.
- `checks`: the checks, a folder for each interface.
- `run`: the search for a failing program, in this process or a child; results and reports.
- `output`: a report as text.
- `commands`: the commands of `sb3compat`, and the arguments that pytest shares with them.

The kit calls only public methods of an environment, and never imports the adapters.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sb3compat.conformance.contract import check
    from sb3compat.conformance.findings import CheckError, FactoryError
    from sb3compat.conformance.judge import Demand, expect
    from sb3compat.conformance.play import Play
    from sb3compat.conformance.record import Record
    from sb3compat.conformance.run.entry import ConformanceError, check_vec_env, check_vector_env
    from sb3compat.conformance.run.options import OptionsError
    from sb3compat.conformance.run.report import Report, Result

__all__ = [
    "CheckError",
    "ConformanceError",
    "Demand",
    "FactoryError",
    "OptionsError",
    "Play",
    "Record",
    "Report",
    "Result",
    "check",
    "check_vec_env",
    "check_vector_env",
    "expect",
]

_HOME = {
    "CheckError": "findings",
    "ConformanceError": "run.entry",
    "Demand": "judge",
    "FactoryError": "findings",
    "OptionsError": "run.options",
    "Play": "play",
    "Record": "record",
    "Report": "run.report",
    "Result": "run.report",
    "check": "contract",
    "check_vec_env": "run.entry",
    "check_vector_env": "run.entry",
    "expect": "judge",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name == "hypothesis":
            from sb3compat.errors import install_line

            raise ModuleNotFoundError(
                "Expected Hypothesis to be installed, which the conformance kit draws its programs "
                f"with: {install_line('conformance')}",
                name="hypothesis",
            ) from error
        raise
    globals()[name] = value
    return value
