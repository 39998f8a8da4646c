"""The command line, mostly in processes of its own, as users start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sb3compat import cli
from sb3compat.conformance.checks.catalogue import checks_of
from sb3compat.conformance.commands.targets import AUTORESET_MODES
from sb3compat.conformance.output import FORMATS
from sb3compat.conformance.output.json import load
from sb3compat.conformance.program.source import PLACEHOLDER

ROOT = Path(__file__).parents[2]
TINY = "tests.conformance.tiny"
_NATIVE = ["--vectorization-mode=vector_entry_point"]
ONLY = ("--only", "terminal_observation_iff_done")


def sb3compat(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sb3compat", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said of wrong use, in this process."""
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("sb3compat: ") == 1
    return err


def test_what_the_parser_repeats_is_what_the_kit_has() -> None:
    assert cli.FORMATS == FORMATS
    assert tuple(AUTORESET_MODES) == cli.AUTORESET_MODES


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"]])
def test_help_is_light(arguments: list[str]) -> None:
    script = f"""
import sys
from sb3compat.cli import main
try:
    main({arguments})
except SystemExit as end:
    assert not end.code
heavy = ["gymnasium", "numpy", "hypothesis", "pytest", "stable_baselines3"]
print("loaded:", [name for name in heavy if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("loaded: []\n")
    assert "sb3compat" in done.stdout


def test_a_clean_environment_and_each_file(tmp_path: Path) -> None:
    files = [f"--{form}={tmp_path / form}" for form in cli.FILES]
    output = ["--format", "junit", "--output", str(tmp_path / "output")]
    done = sb3compat("check", f"{TINY}:TinyVecEnv", *ONLY, *files, *output)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    report = load((tmp_path / "json").read_text())
    assert (report.target, report.ok, report.num_envs) == (f"{TINY}:TinyVecEnv", True, 2)
    assert [result.status for result in report.results] == ["passed"]
    for name in ("junit", "output"):
        assert ElementTree.parse(tmp_path / name).getroot().tag == "testsuites"
    assert (tmp_path / "markdown").read_text().startswith("# tests.conformance.tiny:TinyVecEnv")
    assert (tmp_path / "html").read_text().startswith("<!DOCTYPE html>")


def test_a_broken_environment_and_its_replay(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = sb3compat("check", f"{TINY}:NoTerminalObservation", *ONLY, "--json", str(report))
    assert (done.returncode, done.stderr) == (1, "")
    assert "failed        terminal_observation_iff_done" in done.stdout
    assert "sb3compat explain terminal_observation_iff_done" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 failed in ")
    assert "\x1b" not in done.stdout
    # The reproduction runs as it is, wherever it is.
    script = tmp_path / "script.py"
    script.write_text(load(report.read_text()).results[0].reproduction)
    alone = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, check=False)
    assert b"AssertionError: list(infos[0])=[], but should be" in alone.stderr

    for file in (report, script):
        done = sb3compat("replay", str(file), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("still failing: ")
        assert done.stdout.endswith("1 still failing\n")
    # Repaired, it passes.
    text = report.read_text().replace("NoTerminalObservation", "TinyVecEnv")
    report.write_text(text)
    done = sb3compat("replay", str(report))
    assert (done.returncode, done.stdout) == (
        0,
        "passing now: terminal_observation_iff_done\n1 passing now\n",
    )


def test_replay_of_what_cannot_be_run(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"{PLACEHOLDER}\nassert make_env().num_envs == 3, 'two'\n")
    done = sb3compat("replay", str(script))
    assert done.returncode == 2
    assert "does not know the factory; name it: --target package.module:name" in done.stdout
    done = sb3compat("replay", str(script), "--target", f"{TINY}:TinyVecEnv")
    assert (done.returncode, "AssertionError: two" in done.stdout) == (1, True)
    script.write_text("raise ValueError('no')\n")
    done = sb3compat("replay", str(script))
    assert (done.returncode, done.stdout.startswith("failing otherwise")) == (1, True)
    script.write_text("import time\ntime.sleep(1000)\n")
    done = sb3compat("replay", str(script), "--max-seconds", "0.5")
    assert (done.returncode, "has not ended within" in done.stdout) == (1, True)


def test_a_factory_that_fails_shows_its_own_traceback() -> None:
    for more in ([], ["--no-isolate"]):
        done = sb3compat("check", f"{TINY}:boom", *more)
        assert (done.returncode, done.stdout) == (2, "")
        lines = done.stderr.splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert "tiny.py" in lines[1]
        assert "ValueError: no licence for the simulator" in lines
        assert lines[-1] == f"sb3compat: {TINY}:boom cannot be made, see above."
        assert "sb3compat/" not in done.stderr.replace(str(ROOT), "")


def test_a_module_that_fails_shows_its_own_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text("import no_such_simulator\n")
    done = sb3compat("check", "broken_module.py:make_env", cwd=tmp_path)
    assert done.returncode == 2
    assert 'broken_module.py", line 1' in done.stderr.splitlines()[1]
    assert "No module named 'no_such_simulator'" in done.stderr


def test_an_id() -> None:
    done = sb3compat(
        "check", "CartPole-v1", "--num-envs=2", "--autoreset-mode=SameStep", "--format=json",
        "--max-seconds=1",
        '--env-kwargs={"max_episode_steps": 9}',
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert (report["family"], report["mode"], report["num_envs"]) == ("vector_env", "SameStep", 2)
    assert report["target"] == "CartPole-v1 (SameStep)"


def test_sb3_over_an_id_and_expected_failures(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    known = tmp_path / "known.toml"
    known.write_text('[terminal_observation_iff_done]\nreason = "once"\nlink = "https://e.org/1"\n')
    arguments = ["check", "CartPole-v1", "--vec-env=dummy", *ONLY, "-q"]
    done = sb3compat(*arguments, "--expected-failures", str(known), "--strict")
    assert (done.returncode, done.stdout[:9]) == (1, "1 xpassed")


def test_the_process_that_shows_the_results_does_without_sb3() -> None:
    pytest.importorskip("stable_baselines3")
    script = f"""
import sys
from sb3compat.cli import main
code = main(["check", "CartPole-v1", "--vec-env=dummy", *{ONLY}, "-q"])
print(code, [name for name in ("stable_baselines3", "torch") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("0 []\n")


def test_a_file_and_a_reference(tmp_path: Path) -> None:
    (tmp_path / "file_of_mine.py").write_text(f"from {TINY} import FloatDones, singles\n")
    done = sb3compat(
        "check", "file_of_mine.py:FloatDones", "--only=dones_bool_array", "--reset-options={}",
        "--reference=file_of_mine.py:singles", "--capability=seeding", "--no-capability=sub_envs",
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert f"sys.path.insert(0, {str(tmp_path)!r})" in done.stdout
    assert "from file_of_mine import FloatDones as make_env" in done.stdout
    assert "from file_of_mine import singles as reference" in done.stdout


def test_without_hypothesis() -> None:
    script = """
import sys
sys.modules["hypothesis"] = None
from sb3compat.cli import main
assert main(["check", "CartPole-v1"]) == 2
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert 'pip install "sb3compat[conformance]"' in done.stderr


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    everything = capsys.readouterr().out
    assert cli.main(["list", "--family", "vec_env"]) == 0
    some = capsys.readouterr().out
    for check in checks_of():
        line = f"{check.severity:<8} {check.id} "
        assert line in everything
        assert check.contract in everything
        assert (line in some) or check.family == "vector_env"
    assert f"{len(checks_of('vec_env'))} checks" in some
    assert "masked_reset" in everything


def test_list_to_a_reader_who_has_enough() -> None:
    done = subprocess.run(
        f"{sys.executable} -m sb3compat list | true",
        shell=True, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_explain_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    for check in checks_of():
        assert cli.main(["explain", check.id]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"{check.id}\n\n")
        assert check.source in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "dones_bool_aray"], "Did you mean 'dones_bool_array'?"),
        (["explain", "qqq"], "got 'qqq'. `sb3compat list` shows them."),
        (["check", f"{TINY}:Tiny"], "got nothing of that name. Did you mean 'TinyVecEnv'?"),
        (["check", f"{TINY}:qqq"], "got nothing of that name. It has AtTheEnd, Dies, "),
        (["check", "tests.conformance.tinny:x"], "there is no 'tests.conformance.tinny' in"),
        (["check", "no_such_package.x:y"], "there is no 'no_such_package' in"),
        (["check", "no/such/file.py:y"], "got 'no/such/file.py': no such file."),
        (["check", "tests/conformance/tiny.py"], "Name it: tests/conformance/tiny.py:make_env"),
        (["check", f"{TINY}:boom", "--num-envs=4"], "with the id of an environment only"),
        (["check", f"{TINY}:number"], "Expected a function that makes the environment, got int"),
        (["check", f"{TINY}:nonsense"], "or a gymnasium.vector.VectorEnv, got int: 3."),
        (["check", "x-v0", "--vec-env=dummy", "--autoreset-mode=Disabled"], "got both"),
        (
            [*["check", "x-v0", "--autoreset-mode=Disabled"], *_NATIVE],
            "Expected --autoreset-mode with --vectorization-mode sync or async",
        ),
        (["check", f"{TINY}:boom", "--only=dones_bool"], "Did you mean 'dones_bool_array'?"),
        (["check", f"{TINY}:boom", "--capability=seedin"], "Did you mean 'seeding'?"),
        (
            ["check", f"{TINY}:boom", "--capability=render", "--no-capability=render"],
            "Expected --capability or --no-capability for 'render', got both.",
        ),
        (["check", f"{TINY}:boom", "--reference=x"], "Expected --reference as package.module:name"),
        (["check", f"{TINY}:boom", f"--reference={TINY}:single"], "to be a list of functions"),
        (["check", f"{TINY}:boom", "--json=no/such/folder/x"], "a file in a folder that exists"),
        (["check", f"{TINY}:boom", "--expected-failures=no.toml"], "No such file"),
        (["replay", "no.json"], "Expected a report as JSON or a script, got 'no.json'"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "--vec-env=dummy" in arguments:
        pytest.importorskip("stable_baselines3")
    assert message in refused(capsys, *arguments, *(["--no-isolate"] * (arguments[0] == "check")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[dones_bool_aray]\nreason = 'x'", "Did you mean 'dones_bool_array'?"),
        ("[dones_bool_array]\nreeson = 'x'", "got the key 'reeson'. Take it out."),
        ("[dones_bool_array]\nlink = 'x'", "got reason='', link='x'. Say why it fails."),
        ("dones_bool_array = 'x'", "got dones_bool_array = 'x'. Write it as a table."),
        ("[dones_bool_array", "Expected a TOML file, got"),
    ],
)
def test_wrong_files_of_expected_failures(
    text: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "known.toml").write_text(text)
    said = refused(
        capsys, "check", f"{TINY}:boom", f"--expected-failures={tmp_path / 'known.toml'}"
    )
    assert message in said
    assert "known.toml" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-envs=0"], "Expected a number above 0, got '0'."),
        (["--max-seconds=soon"], "Expected a number above 0, got 'soon'."),
        (["--env-kwargs=[1]"], "Expected a JSON object such as '{\"key\": 1}', got '[1]'."),
        (["--reset-options={a: 1}"], "Mind the quotes"),
        (["--autoreset-mode=same"], "invalid choice: 'same'"),
    ],
)
def test_wrong_values(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["check", "CartPole-v1", *arguments])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_what_was_taken_for_an_id(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "check", "my_package", "--no-isolate")
    assert "'my_package' was taken for the id of an environment" in said
