"""Which mutants the tests run, and which environments `make matrix` has to run again."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.matrix.digests import ROOT, Digests, path_of, present
from conformance.matrix.record import OUTCOMES
from conformance.matrix.selection import correct_to_test, stale, to_test
from conformance.matrix.specimens import sections
from conformance.mutants import vec_env, vector_env
from conformance.mutants.registry import Mutant
from sb3compat.conformance.checks.catalogue import checks_of

FRESH = present()
FAMILIES = {"vec_env": vec_env.MUTANTS, "vector_env": vector_env.MUTANTS}
CHECKS = {family: checks_of(family) for family in FAMILIES}


def select(family: str, recorded: Digests = FRESH, profile: str = "ci") -> list[str]:
    return to_test(FAMILIES[family], CHECKS[family], recorded, FRESH, profile)


def without(kind: str, path: str) -> Digests:
    """What is recorded, where this file was another one then."""
    return replace(FRESH, **{kind: {**getattr(FRESH, kind), path: "another"}})


def homes(family: str, mutant: Mutant) -> set[str]:
    return {
        path_of(check.function.__module__) for check in CHECKS[family] if check.id in mutant.fails
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("profile", ["dev", "ci"])
def test_a_small_sample_reaches_each_module_of_checks(family: str, profile: str) -> None:
    sample = select(family, profile=profile)
    reached: Counter[str] = Counter()
    for name in sample:
        reached.update(homes(family, FAMILIES[family][name]))
    assert set(reached) == {path_of(check.function.__module__) for check in CHECKS[family]}
    assert len(sample) <= len(reached)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_of_them_nightly_and_where_the_core_has_changed(family: str) -> None:
    everything = list(FAMILIES[family])
    assert select(family, profile="nightly") == everything
    assert select(family, without("core", next(iter(FRESH.core)))) == everything
    assert select(family, Digests({}, {}, {})) == everything


@pytest.mark.parametrize("path", FRESH.mutants)
def test_those_of_a_module_that_has_changed(path: str) -> None:
    for family, mutants in FAMILIES.items():
        its = {name for name, m in mutants.items() if path_of(m.cls.__module__) == path}
        assert select(family, without("mutants", path)) == ordered(mutants, its, family)


@pytest.mark.parametrize("path", FRESH.checks)
def test_those_that_are_aimed_at_by_checks_that_have_changed(path: str) -> None:
    for family, mutants in FAMILIES.items():
        its = {name for name, mutant in mutants.items() if path in homes(family, mutant)}
        assert select(family, without("checks", path)) == ordered(mutants, its, family)


def ordered(mutants: Mapping[str, Mutant], its: set[str], family: str) -> list[str]:
    """These and the sample, in the order of the registry."""
    sample = set(select(family))
    return [name for name in mutants if name in its | sample]


@pytest.mark.parametrize("family", FAMILIES)
def test_correct_environments_are_all_tried_where_a_check_has_changed(family: str) -> None:
    environments = list(range(12))

    def tried(recorded: Digests, profile: str = "ci") -> list[int]:
        return correct_to_test(environments, CHECKS[family], recorded, FRESH, profile)

    assert tried(FRESH) == [0, 5, 10]
    assert tried(FRESH, "nightly") == environments
    assert tried(without("core", next(iter(FRESH.core)))) == environments
    for path in FRESH.checks:
        its = path in {path_of(check.function.__module__) for check in CHECKS[family]}
        assert tried(without("checks", path)) == (environments if its else [0, 5, 10])


def test_the_matrix_has_to_run_what_a_change_could_touch() -> None:
    found = sections()
    everything = [(section.key, each.name) for section in found for each in section.specimens]

    def due(recorded: Digests) -> list[tuple[str, str]]:
        return [(section.key, each.name) for section, each in stale(found, recorded, FRESH)]

    assert due(FRESH) == []
    assert due(without("core", next(iter(FRESH.core)))) == everything
    # A file of the core that is gone has had its say, too.
    assert due(replace(FRESH, core={**FRESH.core, "gone.py": "once"})) == everything
    endings = "conformance/mutants/vector_env_endings.py"
    assert due(without("mutants", endings)) == [
        (section.key, each.name)
        for section in found
        for each in section.specimens
        if each.module == "conformance.mutants.vector_env_endings"
    ]
    # A check that has changed might kill any environment of its sections.
    (disabled,) = {
        path_of(check.function.__module__)
        for check in CHECKS["vector_env"]
        if check.modes == ("Disabled",) and "masked" not in check.function.__module__
    }
    assert due(without("checks", disabled)) == [pair for pair in everything if "disabled" in pair]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the repository, as far as these tests need it."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("sb3compat", "conformance", "tests", "docs/reference"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    # As after `make matrix`.
    path = tmp_path / "docs" / "reference" / OUTCOMES
    outcomes = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**outcomes, "digests": FRESH.to_dict()}), encoding="utf-8")
    return tmp_path


def collected(root: Path) -> list[str]:
    """The mutants that pytest collects there."""
    test = "test_a_mutant_fails_its_own_checks_and_no_others"
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider",
            f"tests/conformance/checks/test_vector_env.py::{test}",
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "SB3COMPAT_PROFILE": "ci"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout
    return re.findall(rf"::{test}\[(.+)\]$", done.stdout, re.M)


def test_pytest_collects_the_mutants_of_a_file_that_was_edited(copy: Path) -> None:
    path = copy / "conformance" / "mutants" / "vector_env_endings.py"
    before = path.read_text(encoding="utf-8")
    path.write_text(f"{before}\n# A remark.\n", encoding="utf-8")
    assert collected(copy) == select("vector_env")
    path.write_text(f"{before}\nMORE = 1\n", encoding="utf-8")
    mutants = vector_env.MUTANTS
    its = {name for name, m in mutants.items() if m.cls.__module__.endswith("_endings")}
    assert collected(copy) == ordered(mutants, its, "vector_env")
