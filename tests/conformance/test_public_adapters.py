from __future__ import annotations

import pytest

from conformance.specimens.public_adapters.judged import LIBRARY, verdicts
from conformance.targets import TARGETS
from tests.conformance.kit import broken
from tests.profiles import some

VERDICTS = {verdict.name: verdict for verdict in verdicts()}


@pytest.mark.parametrize("name", some(sorted(VERDICTS), 2))
def test_the_main_defect_of_a_port_is_found(name: str) -> None:
    pytest.importorskip("stable_baselines3")
    main = VERDICTS[name].defects[0].checks
    make_env = TARGETS[f"{LIBRARY}-{name}"].define()["make_env"]
    found = broken(make_env, 0.2, only=main)
    assert set(main) == set(found), found
