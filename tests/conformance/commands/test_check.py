"""`sb3compat check`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sb3compat import cli
from sb3compat.conformance.output.json import load
from tests.conformance.commands.shell import ONLY, TINY, refused, sb3compat
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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which modules are imported from."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def test_a_module_that_is_missing_names_a_near_one_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "rover.py").touch()
    assert "Did you mean 'rover'?" in refused(capsys, "check", "rovr:make_env")
    assert "Did you mean" not in refused(capsys, "check", "my_package:make_env")  # packaging


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
    assert not set(loaded())
try:
    main(["check", "slow_envs.py:make_env"])
except SystemExit as end:
    assert end.code == "imported"
"""
    done = run("-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 9  # a line for each


@pytest.mark.parametrize(
    ("way", "made"),
    [
        ("--autoreset-mode=SameStep", ("CartPole-v1 (SameStep)", "vector_env", "SameStep", 2)),
        ("--vec-env=dummy", ("CartPole-v1 (dummy)", "vec_env", None, 2)),
    ],
)
def test_an_id_is_made_as_asked_and_is_its_own_reference(
    way: str, made: tuple[object, ...]
) -> None:
    if "--vec-env" in way:
        pytest.importorskip("stable_baselines3")
    done = sb3compat(
        "check", "CartPole-v1", "--num-envs=2", way, '--env-kwargs={"max_episode_steps": 9}',
        "--only=rows_match_reference", "--programs=2", "--format=json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert tuple(report[key] for key in ("target", "family", "mode", "num_envs")) == made
    assert [result["status"] for result in report["results"]] == ["passed"]


def test_a_file_and_a_reference_are_in_the_reproduction(tmp_path: Path) -> None:
    (tmp_path / "file_of_mine.py").write_text(f"from {TINY} import NoReset, singles\n")
    done = sb3compat(
        "check", "file_of_mine.py:NoReset", *ONLY, "--reset-options={}",
        "--reference=file_of_mine.py:singles", "--capability=seeding", "--no-capability=sub_envs",
        cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert f"sys.path.insert(0, {str(tmp_path)!r})" in done.stdout
    assert "from file_of_mine import NoReset as make_env" in done.stdout
    assert "from file_of_mine import singles as reference" in done.stdout


_NATIVE = ["--vectorization-mode=native"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "dones_bool_aray"], "Did you mean 'dones_bool_array'?"),
        (["explain", "qqq"], "got 'qqq'. `sb3compat list` shows them."),
        (["check", f"{TINY}:Tiny"], "got nothing of that name. Did you mean 'TinyVecEnv'?"),
        (["check", f"{TINY}:qqq"], "got nothing of that name. It defines AtTheEnd, Dies, "),
        (["check", "tests.conformance.tinny:x"], "there is no 'tests.conformance.tinny' in"),
        (["check", "no_such_package.x:y"], "there is no 'no_such_package' in"),
        (["check", "no/such/file.py:y"], "got 'no/such/file.py': no such file. Name one"),
        (["check", "tests/conformance/tinny.py:y"], "Did you mean 'tests/conformance/tiny.py'?"),
        (["check", "tests/conformance/tiny.pyy:y"], "Did you mean 'tests/conformance/tiny.py'?"),
        (["check", "hatch_build.pyy:make_env"], "Did you mean 'hatch_build.py'?"),
        (["check", "hatch_bild:make_env"], "Did you mean 'hatch_build'?"),
        (["check", "Pendulum-v1", *_NATIVE], "without a vector_entry_point. Use"),
        (["check", f"{TINY}:boom", "--only=zzz"], "got 'zzz'. `sb3compat list` shows them."),
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


def test_the_settings_of_the_project_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pyproject.toml").write_text(
        f'[tool.sb3compat]\nonly = ["*_obs_only"]\n[tool.sb3compat.targets."{TINY}:NoReset"]\n'
        '[tool.sb3compat.targets."x:y"]\nseed = 1\n'
    )
    assert cli.main(["check", f"{TINY}:NoReset", "--no-isolate", "-q"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("failed: reset_returns_obs_only: type(result)=<class 'tuple'>, but")
    assert last.startswith("1 failed in ")


def test_an_interrupt_shows_the_results_so_far() -> None:
    checks = ("--only=num_envs_positive", "--only=terminal_observation_iff_done")
    done = sb3compat("check", f"{TINY}:Interrupts", *checks)
    assert (done.returncode, done.stderr) == (130, "sb3compat: interrupted\n")
    assert "Note: interrupted after 1 of 2 checks" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 passed in ")
