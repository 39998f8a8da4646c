"""`sb3compat check`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sb3compat import cli
from sb3compat.conformance.output.json import load
from tests.conformance.commands.shell import ONLY, ROOT, TINY, refused, sb3compat
from tests.interpreter import LOADED, run


def test_a_correct_environment_passes_and_each_file_is_written(tmp_path: Path) -> None:
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
    done = sb3compat("check", "CartPole-v1", "--reference=broken_module:singles", cwd=tmp_path)
    assert 'broken_module.py", line 1' in done.stderr.splitlines()[1]


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        (["CartPol-v1"], "NameNotFound: Environment `CartPol` doesn't exist. Did you mean: `Cart"),
        (["CartPol-v1", "--vec-env=dummy"], "Did you mean: `CartPole`?"),
        (["CartPol-v1", "--vec-env=subproc"], "Did you mean: `CartPole`?"),
        (["CartPol-v1", "--vectorization-mode=async"], "Did you mean: `CartPole`?"),
        (["Nosuch-v0"], "the module that registers it: my_module:Nosuch-v0"),
        (["nosuch/CartPole-v1"], "NamespaceNotFound: Namespace nosuch not found."),
        (["CartPole-v7"], "It provides versioned environments: [ `v0`, `v1` ]."),
        (["no_such_module:CartPole-v1"], "contains env registration and can be imported."),
        (["make_it"], "To name a function, write my_module:make_env or path/to/file.py:make_env"),
        (["no id"], "Malformed environment ID: no id."),
    ],
)
def test_an_id_that_gymnasium_refuses_is_one_line(
    arguments: list[str], way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--vec-env" in str(arguments):
        pytest.importorskip("stable_baselines3")
    # The plain id is made in the process of the checks, as by default; the others are quicker.
    more = [] if arguments == ["CartPol-v1"] else ["--no-isolate"]
    (line,) = refused(capsys, "check", *arguments, *more).splitlines()
    assert line.startswith(f"sb3compat: {arguments[0]!r} cannot be made: ")
    assert way_out in line


def test_an_environment_of_an_id_that_fails_shows_its_own_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, "check", "CartPole-v1", "-q", '--env-kwargs={"foo": 1}')
    assert said.startswith("Traceback (most recent call last):")
    assert said.endswith("see above. Does it take the arguments of --env-kwargs?\n")


def test_wrong_options_are_refused_before_the_target_is_imported(tmp_path: Path) -> None:
    (tmp_path / "slow_envs.py").write_text("raise SystemExit('imported')\n")
    script = f"""
{LOADED}
from sb3compat.cli import main

for wrong in [
    ["--only=zzz"], ["--skip=zzz"], ["--capability=zzz"], ["--no-capability=zzz"],
    ["--capability=render", "--no-capability=render"], ["--reference=zzz"],
    ["--expected-failures=zzz"], ["--json=zzz/zzz"], ["--num-envs=4"],
]:
    assert main(["check", "slow_envs.py:make_env", *wrong]) == 2, wrong
    assert "slow_envs" not in sys.modules
    assert not set(loaded()) - {{"hypothesis"}}
try:
    main(["check", "slow_envs.py:make_env"])
except SystemExit as end:
    assert end.code == "imported"
"""
    done = run("-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 9  # a line for each


def test_an_id_is_made_by_make_vec() -> None:
    done = sb3compat(
        "check", "CartPole-v1", "--num-envs=2", "--autoreset-mode=SameStep", "--format=json",
        "--max-seconds=1",
        '--env-kwargs={"max_episode_steps": 9}',
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert (report["family"], report["mode"], report["num_envs"]) == ("vector_env", "SameStep", 2)
    assert report["target"] == "CartPole-v1 (SameStep)"


def test_a_file_and_a_reference_are_in_the_reproduction(tmp_path: Path) -> None:
    (tmp_path / "file_of_mine.py").write_text(f"from {TINY} import FloatDones, singles\n")
    done = sb3compat(
        "check", "file_of_mine.py:FloatDones", "--only=dones_bool_array", "--reset-options={}",
        "--reference=file_of_mine.py:singles", "--capability=seeding", "--no-capability=sub_envs",
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert not (tmp_path / ".hypothesis").exists()
    assert f"sys.path.insert(0, {str(tmp_path)!r})" in done.stdout
    assert "from file_of_mine import FloatDones as make_env" in done.stdout
    assert "from file_of_mine import singles as reference" in done.stdout


_NATIVE = ["--vectorization-mode=native"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "dones_bool_aray"], "Did you mean 'dones_bool_array'?"),
        (["explain", "x"], "got 'x'. `sb3compat list` shows them."),
        (["explain", "qqq"], "got 'qqq'. `sb3compat list` shows them."),
        (["check", f"{TINY}:Tiny"], "got nothing of that name. Did you mean 'TinyVecEnv'?"),
        (["check", f"{TINY}:qqq"], "got nothing of that name. It has AtTheEnd, Dies, "),
        (["check", "tests.conformance.tinny:x"], "there is no 'tests.conformance.tinny' in"),
        (["check", "no_such_package.x:y"], "there is no 'no_such_package' in"),
        (["check", "no/such/file.py:y"], "got 'no/such/file.py': no such file. Name one"),
        (["check", "tests/conformance/tinny.py:y"], "Did you mean 'tests/conformance/tiny.py'?"),
        (["check", "tests/conformance/tiny.pyy:y"], "Did you mean 'tests/conformance/tiny.py'?"),
        (["check", "hatch_build.pyy:make_env"], "Did you mean 'hatch_build.py'?"),
        (["check", "hatch_bild:make_env"], "Did you mean 'hatch_build'?"),
        (["check", "Pendulum-v1", *_NATIVE], "without a vector_entry_point. Use"),
        (["check", f"{TINY}:boom", "--only=zzz"], "got 'zzz'. `sb3compat list` shows them."),
        (["check", f"{TINY}:boom", "--no-capability=zzz"], "`sb3compat list` shows them."),
        (["check", "tests/conformance/tiny.py"], "Name it: tests/conformance/tiny.py:make_env"),
        (["check", "tests/conformance/tiny.py:"], "Name it: tests/conformance/tiny.py:make_env"),
        (["check", ":make_env"], "before the colon, got ':make_env'. Name it: my_module:make_env"),
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
        (["replay", "no.json"], "There is no file 'no.json'. Pass a report that"),
        (["replay", "tests"], "got 'tests': Is a directory. Pass a report that"),
        (
            ["replay", "README.md"],
            "another text (Expecting value: line 1 column 1 (char 0)). Write",
        ),
    ],
)
def test_wrong_use_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--vec-env=dummy" in arguments:
        pytest.importorskip("stable_baselines3")
    assert message in refused(capsys, *arguments, *(["--no-isolate"] * (arguments[0] == "check")))


def test_the_settings_of_the_project_hold(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.sb3compat]\nonly = ["dones_*"]\n[tool.sb3compat.targets."{TINY}:FloatDones"]\n'
        '[tool.sb3compat.targets."x:y"]\nseed = 1\n'
    )
    done = sb3compat("check", f"{TINY}:FloatDones", "--no-isolate", "-q", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("failed: dones_bool_array: dones=array([0., 0.]), but should be a bool")
    assert last.startswith("1 failed, 1 passed in ")


def test_an_id_is_its_own_reference() -> None:
    pytest.importorskip("stable_baselines3")
    done = sb3compat(
        "check", "CartPole-v1", "--num-envs=2", "--vec-env=dummy", "--format=json",
        "--only=rows_match_reference", "--only=terminal_observation_is_last",
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert [result["status"] for result in report["results"]] == ["passed", "passed"], done.stdout


def test_an_interrupt_shows_the_results_so_far() -> None:
    done = sb3compat("check", f"{TINY}:Interrupts", "--only=num_envs_positive", *ONLY)
    assert (done.returncode, done.stderr) == (130, "sb3compat: interrupted\n")
    assert "Note: interrupted after 1 of 2 checks" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 passed in ")
