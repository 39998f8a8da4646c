"""The known failures of other libraries."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from sb3compat.conformance import check_vec_env
from sb3compat.conformance.checks.catalogue import find_checks
from sb3compat.conformance.program.source import PLACEHOLDER
from sb3compat.conformance.run import toml
from sb3compat.conformance.run.known import FILE, Known, known_failures, read
from sb3compat.conformance.subject.examine import examine
from tests.conformance.runs import here
from tests.conformance.tiny import TinyVecEnv

ALL = read(toml.read(FILE))


@pytest.mark.parametrize("known", ALL, ids=lambda known: f"{known.classes[0]}-{known.check}")
def test_each_entry_names_a_check_a_class_and_a_place(known: Known) -> None:
    assert find_checks(known.check)
    assert known.link.startswith("https://")
    for name in known.classes:
        module, _, cls = name.rpartition(".")
        if find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"{known.distribution} is not installed")
        assert isinstance(getattr(import_module(module), cls), type)


@pytest.mark.parametrize(
    ("installed", "concerned"),
    [("1.1.9", False), ("1.2", True), ("1.2.3a1", True), ("1.4.0", False), ("2.0", False)],
)
def test_an_entry_is_of_certain_versions(installed: str, concerned: bool) -> None:
    known = Known("it", "x", ("a.B",), "", "", since="1.2", before="1.4")
    assert known.concerns(["a.A", "a.B"], "SameStep", installed) == concerned
    assert not known.concerns(["a.A"], None, "1.2")
    assert not replace(known, modes=("Disabled",)).concerns(["a.B"], "SameStep", "1.2")


class NoSeeds(TinyVecEnv):
    """Makes a mistake of its own."""

    def seed(self, seed: int | None = None) -> list[int | None]:
        return []


class Upstream(NoSeeds):
    """An environment of a library that is known to reset as a `VectorEnv` does."""

    def reset(self) -> Any:
        return super().reset(), {}


class Mended(Upstream):
    def reset(self) -> Any:
        return super().reset()[0]


class Wrapper(NoSeeds):
    def __init__(self) -> None:
        super().__init__()
        self.venv = Upstream()

    def reset(self) -> Any:
        return self.venv.reset()


@pytest.fixture
def _known(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("known") / "known.toml"
    file.write_text(
        '[[numpy]]\ncheck = "reset_returns_obs_only"\nreason = "so it is"\nlink = "https://e.org"\n'
        f'classes = ["{__name__}.Upstream"]\n'
    )
    monkeypatch.setattr("sb3compat.conformance.run.known.FILE", file)


@pytest.mark.usefixtures("_known")
@pytest.mark.parametrize("strict", [False, True])
def test_a_known_failure_is_expected_and_others_are_not(strict: bool) -> None:
    for factory, status in ((Mended, "passed"), (Wrapper, "xfailed"), (Upstream, "xfailed")):
        only = ("reset_returns_obs_only", "seed_returns_n")
        # No script is run without a factory.
        report = here(factory, only=only, known_upstream=True, strict=strict, make_env=PLACEHOLDER)
        assert report["reset_returns_obs_only"].status == status, factory
        assert [result.check_id for result in report.failures()] == ["seed_returns_n"]
    message = report["reset_returns_obs_only"].message
    assert message.endswith("expected: known upstream: so it is (https://e.org)")


@pytest.mark.usefixtures("_known")
def test_a_failure_of_another_library_is_a_warning() -> None:
    only = ("reset_returns_obs_only",)
    result = here(Upstream, only=only, make_env=PLACEHOLDER)["reset_returns_obs_only"]
    assert (result.status, result.severity) == ("failed", "warning")
    assert result.message.endswith("(known upstream: so it is (https://e.org))")
    for strict in (False, True):
        assert here(Upstream, only=only, make_env=PLACEHOLDER, strict=strict).ok is not strict


@pytest.mark.usefixtures("_known")
def test_nothing_is_known_of_other_classes_and_absent_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert known_failures(examine(TinyVecEnv)) == {}
    assert list(known_failures(examine(Upstream))) == ["reset_returns_obs_only"]
    monkeypatch.setattr("sb3compat.conformance.run.versions.installed", lambda name: "")
    assert known_failures(examine(Upstream)) == {}


def test_a_vec_env_of_stable_baselines3_has_known_failures() -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    import gymnasium as gym

    def subproc() -> object:
        return vec_env.SubprocVecEnv([lambda: gym.make("CartPole-v1")] * 2, start_method="fork")

    arguments = {"only": ["rewards_float32", "infos_is_list"], "programs": 2, "strict": True}
    report = check_vec_env(subproc, known_upstream=True, **arguments)
    assert {result.status for result in report.results} == {"xfailed"}
    assert not check_vec_env(subproc, on_fail=None, **arguments).ok
