"""The command line: the kit's four commands, `trace`, `tune` and `versions`."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from argparse import SUPPRESS
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import sb3compat
from sb3compat._arguments import KNOWLEDGE, MAKING, RUN, SettingsError, positive, settings

# A copy, so that --help need not import the kit; a test compares.
FORMATS = ("terminal", "json", "junit", "markdown", "html")
FILES = FORMATS[1:]
# What Stable-Baselines3 calls --num-envs.
_NUM_ENVS = "--n-envs"

_CHECK = """\
Check that a vector environment keeps its contract.

TARGET is one of
  package.module:name      a function without arguments that makes a VecEnv or a VectorEnv
  path/to/file.py:name     the same, in a file
  CartPole-v1              the id of an environment, made with gymnasium.make_vec
                           (package:CartPole-v1 imports the package first)

Options that are not given are taken from [tool.sb3compat] in the nearest pyproject.toml, and from
[tool.sb3compat.targets."TARGET"]: strict = true, only = ["terminal_*"]. If there is one such
target, it need not be named here.
"""
_CHECK_EXAMPLES = """\
examples:
  sb3compat check my_package:make_env
  sb3compat check envs.py:make_env --only 'terminal_*' --skip terminal_observation_iff_done
  sb3compat check CartPole-v1 --vectorization-mode async --autoreset-mode SameStep
  sb3compat check CartPole-v1 --vec-env subproc --num-envs 4
  sb3compat check my_package:make_env --expected-failures known.toml --junit junit.xml

exit codes:
  0  no check has failed, or only warnings and expected failures
  1  a check has failed, or a check that has to pass before those of --only; or fewer checks were
     exercised than --require-exercised demands; with --strict also if a check warns, or if an
     expected failure passes or prevents other checks from running
  2  wrong use, or TARGET cannot be made
  130  interrupted; the report has the checks so far
"""
_REPLAY = """\
Run the scripts of a report again, each in a new Python process, and say which of them still fail.

FILE is a report (sb3compat check … --json FILE), or one script as a Python file.
"""
_REPLAY_EXAMPLES = """\
examples:
  sb3compat replay report.json
  sb3compat replay report.json --target my_package:make_env

exit codes:
  0  no script fails any more
  1  a script still fails
  2  wrong use, or a script could not be run
"""
_EXPLAIN_EXAMPLES = """\
example:
  sb3compat explain terminal_observation_iff_done
"""
# What the extra "conformance" installs, and what for.
_EXTRA = {"rich": "prints tables", "jinja2": "writes pages"}
_VERSIONS = """\
Show the installed versions, and whether sb3compat supports them together. sb3compat relies on some
private names of Gymnasium, Stable-Baselines3 and Python. For each missing name, show where it was
expected and what fails without it.

A name counts as found if it is a word in the source code of the module that should have it; no
library is imported. Please include the output in bug reports.
"""
_VERSIONS_CODES = """\
exit codes:
  0  the versions are supported, and no private name is missing
  1  a private name is missing: what depends on it raises an error, or is not exact
  2  wrong use
  3  no name is missing, but these versions of Gymnasium and SB3 were not tested together
"""


_TRACE = """\
Step an environment with random actions, and show what each API returns around the ends of episodes:
the environment's own API, and those that to_sb3 and to_gymnasium present. Values that look wrong
are marked with the id of the check for them.

TARGET is what `sb3compat check` takes: package.module:name, path/to/file.py:name, or an id.
"""
_TRACE_EXAMPLES = """\
examples:
  sb3compat trace CartPole-v1
  sb3compat trace my_package:make_env --episodes 1 --rows 1 --html trace.html
  sb3compat trace CartPole-v1 --vectorization-mode sync --autoreset-mode SameStep

exit codes:
  0  nothing looks wrong
  1  something looks wrong
  2  wrong use, or TARGET cannot be made, or it raises an exception
"""


_TUNE = """\
Make --num-envs environments in each possible way (DummyVecEnv; in this process; natively
vectorized; one worker for each; 1, 2, 4 and so on up to one worker for each core), step them
alternately with random actions, and print a table and the lines of code to use. Which way is
fastest depends on the cost of a step and on the machine: run this where you train, under the load
that you expect there.

ENV is the id of an environment, as for gymnasium.make, or a function without arguments that makes a
single environment: package.module:name or path/to/file.py:name. The module or file is imported: if
it is a script, put its statements, except imports and definitions, below
'if __name__ == "__main__":'.
"""
_TUNE_EXAMPLES = """\
examples:
  sb3compat tune CartPole-v1
  sb3compat tune ale_py:ALE/Pong-v5 --num-envs 8 --seconds 60
  sb3compat tune envs.py:make_env --json

exit codes:
  0  a table was printed
  2  wrong use, or no environment could be made, or one raises an exception in a step
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: What follows `sb3compat`; those of the process by default.

    Returns:
        The exit code: 0 clean, 1 failures, 2 wrong use or a factory that fails; of `versions`
        also 3, for versions that are not supported together.
    """
    given = _parsed(arguments)
    try:
        # Exit through the clean-up code, so that no process is left running.
        with suppress(AttributeError, ValueError):  # what it cannot encode is not to stop it
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        with suppress(ValueError):  # in another thread than the main one
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        code = _run(given)
        sys.stdout.flush()
        return code
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRA:
            raise
        from sb3compat.errors import install_line

        return _complain(
            f"Expected {library} to be installed, which {_EXTRA[library]}. Install it: "
            + install_line("conformance")
        )
    except ImportError:
        from sb3compat.errors import too_old

        if complaint := too_old(f"`sb3compat {given.command}`"):
            return _complain(complaint)
        raise
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe: `sb3compat list | head`. At exit, Python would flush
        # again, and report an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    from sb3compat.errors import nearest

    parser, commands = _parser()
    words = sys.argv[1:] if arguments is None else arguments
    if words and not words[0].startswith("-") and words[0] not in commands.choices:
        known = ", ".join(commands.choices)
        hint = nearest(words[0], commands.choices, "Name one of these.")
        parser.error(f"Expected a command ({known}), got {words[0]!r}.{hint}")
    given, unknown = parser.parse_known_args(words)
    if unknown:
        command = commands.choices[given.command]
        name = next((text.partition("=")[0] for text in unknown if text.startswith("--")), None)
        near = nearest(name, re.findall(r"--[\w-]+", command.format_help()))
        command.error(f"unrecognized arguments: {' '.join(unknown)}{near and '.'}{near}")
    return given


def _run(given: argparse.Namespace) -> int:
    """Run a command, and import no more than it needs."""
    if given.command == "versions":
        from sb3compat._versions import print_versions

        return print_versions(sb3compat.__version__)
    if given.command == "trace":
        from sb3compat._trace.command import command

        return command(given)
    if given.command == "tune":
        return _tune(given)
    if given.command == "check":
        try:
            given = settings(Path.cwd()).fill(given)
        except SettingsError as error:
            return _complain(str(error))
    module = import_module(f"sb3compat.conformance.commands.{given.command}")
    code: int = module.command(given)
    return code


def _tune(given: argparse.Namespace) -> int:
    from sb3compat._tune.command import command
    from sb3compat.conformance.commands.check import complain_of
    from sb3compat.conformance.commands.targets import FACTORY, imported
    from sb3compat.conformance.commands.usage import UsageError

    env_id, shown = given.env, repr(given.env)
    imports: tuple[str, ...] = ()
    found = FACTORY.fullmatch(given.env)
    if found is not None:
        try:
            env_id, _ = imported(found["where"], found["what"], "make_env")
        except UsageError as error:
            return _complain(str(error))
        except Exception as error:
            return complain_of(given.env, error)
        where, shown = found["where"], found["what"]
        module = Path(where).stem if where.endswith(".py") else where
        imports = (f"from {module} import {shown.partition('.')[0]}",)
    return command(env_id, shown, imports, given.num_envs, given.seconds, as_json=given.json)


def _complain(message: str) -> int:
    print(f"sb3compat: {message}", file=sys.stderr)
    return 2


def _parser() -> tuple[argparse.ArgumentParser, Any]:
    """The parser, and its commands."""
    parser = argparse.ArgumentParser(
        prog="sb3compat",
        description="Check, trace and explain vector environments: a VecEnv of Stable-Baselines3, "
        "or a VectorEnv of Gymnasium.",
        epilog="Each command has its own --help: sb3compat check --help",
    )
    parser.add_argument("--version", action="version", version=f"sb3compat {sb3compat.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str, text: str, epilog: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=text,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    _add_check(command("check", "check a vector environment", _CHECK, _CHECK_EXAMPLES))
    command("list", "list the checks", "List the checks.", "").add_argument(
        "--family", choices=("vec_env", "vector_env"), help="only the checks of one interface"
    )
    command(
        "explain", "explain a check", "Say what a check asks for.", _EXPLAIN_EXAMPLES
    ).add_argument("id", metavar="ID", help="the id of a check, as `sb3compat list` shows it")
    _add_replay(command("replay", "run the scripts of a report again", _REPLAY, _REPLAY_EXAMPLES))
    _add_trace(command("trace", "show the ends of episodes", _TRACE, _TRACE_EXAMPLES))
    _add_tune(command("tune", "find the fastest vector environment", _TUNE, _TUNE_EXAMPLES))
    command("versions", "check the installed versions", _VERSIONS, _VERSIONS_CODES)
    return parser, commands


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [OPTIONS] [TARGET]"  # a mistake is not to scroll away
    parser.add_argument(
        "target", metavar="TARGET", nargs="?", help="the environment to check, see above"
    )
    run = parser.add_argument_group("how to run")
    for argument in RUN:
        argument.add(run.add_argument)
    _add_making(parser)
    knowledge = parser.add_argument_group("about the environment")
    for argument in KNOWLEDGE:
        argument.add(knowledge.add_argument)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--format", choices=FORMATS, default="terminal",
        help="the format of the report on the standard output, or in --output (default: terminal)",
    )  # fmt: skip
    output.add_argument(
        "--output", type=Path, metavar="FILE", help="write the report there instead"
    )
    for name in FILES:
        output.add_argument(
            f"--{name}",
            type=Path,
            metavar="FILE",
            help=f"write the report to a file as well, as {name}",
        )
    output.add_argument(
        "--no-times", action="store_true",
        help="leave times out of the report, so that the reports of equal runs are equal",
    )  # fmt: skip
    output.add_argument(
        "-q", "--quiet", action="store_true",
        help="show no progress, and only a line for each failure in the report for the terminal",
    )  # fmt: skip
    output.add_argument(
        "-v", "--verbose", action="store_true",
        help="show a line for each check in the report for the terminal",
    )  # fmt: skip


def _add_making(parser: argparse.ArgumentParser) -> None:
    making = parser.add_argument_group("how to make an environment from an id")
    for argument in MAKING:
        argument.add(making.add_argument)
    making.add_argument(
        _NUM_ENVS, type=positive(int), dest="num_envs", default=SUPPRESS, help=SUPPRESS
    )


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [OPTIONS] FILE"
    parser.add_argument("file", type=Path, metavar="FILE", help="a report as JSON, or a script")
    parser.add_argument(
        "--target", metavar="TARGET",
        help="the environment to check, for scripts that do not name their factory",
    )  # fmt: skip
    parser.add_argument(
        "--max-seconds", type=positive(float), default=60.0, metavar="S",
        help="how long one script may take (default: 60)",
    )  # fmt: skip
    _add_making(parser)


def _add_trace(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s [OPTIONS] TARGET"
    parser.add_argument("target", metavar="TARGET", help="the environment, see above")
    parser.add_argument(
        "--episodes", type=positive(int), default=2, metavar="N",
        help="how many episodes of each row to show (default: 2)",
    )  # fmt: skip
    parser.add_argument("--rows", type=positive(int), metavar="N", help="show the first N rows")
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="the seed of the environment and of the actions (default: 0)",
    )
    parser.add_argument(
        "--max-steps", type=positive(int), default=1000, metavar="N",
        help="stop after N steps, even if fewer episodes have ended (default: 1000)",
    )  # fmt: skip
    for name in ("svg", "html"):
        parser.add_argument(
            f"--{name}",
            type=Path,
            metavar="FILE",
            help=f"write the trace to a file as well, as {name.upper()}",
        )
    _add_making(parser)


def _add_tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("env", metavar="ENV", help="the environment, see above")
    parser.add_argument(
        "--num-envs", _NUM_ENVS, type=positive(int), default=16, metavar="N",
        help="how many environments (default: 16)",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=positive(float), default=20.0, metavar="S",
        help="for how many seconds to step all of them together (default: 20)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
