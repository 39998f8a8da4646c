from __future__ import annotations

from pathlib import Path

import pytest

import conformance
from conformance.specimens.public_adapters.__main__ import files
from conformance.specimens.public_adapters.judged import LIBRARY, verdicts
from conformance.targets import TARGETS
from tests.conformance.kit import broken
from tests.profiles import some

HOME = Path(conformance.__path__[0])
VERDICTS = {verdict.name: verdict for verdict in verdicts()}


def test_each_port_is_a_target_with_a_verdict() -> None:
    targets = {name.partition("-")[2] for name in TARGETS if name.startswith(f"{LIBRARY}-")}
    assert targets == set(VERDICTS)
    assert len(VERDICTS) == 13


def test_the_files_made_from_the_verdicts_are_up_to_date() -> None:
    for path, text in files().items():
        assert (HOME / path).read_text(encoding="utf-8") == text, (
            f"{path}: run `python -m conformance.specimens.public_adapters`"
        )


@pytest.mark.parametrize("name", some(sorted(VERDICTS), 2))
def test_the_main_defect_of_a_port_is_found(name: str) -> None:
    pytest.importorskip("stable_baselines3")
    main = VERDICTS[name].defects[0].checks
    make_env = TARGETS[f"{LIBRARY}-{name}"].define()["make_env"]
    found = broken(make_env, 0.2, only=main)
    assert set(main) == set(found), found
