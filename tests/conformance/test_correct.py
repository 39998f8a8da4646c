"""No check reports a correct environment, of whatever kind: a sample of them."""

from __future__ import annotations

import pytest

from conformance.specimens import accused, accused_in_rows, every, worlds_in_rows
from conformance.specimens.registry import Kind, specimens
from sb3compat.conformance.run.report import UNREACHED
from sb3compat.conformance.subject.examine import examine
from tests.conformance.checks.test_mutants import CLOSES
from tests.conformance.kit import TRAINING, bad, judge
from tests.profiles import some

assert every.MODULES
assert worlds_in_rows.MODES
assert accused.ROWS
assert accused_in_rows.CoinRow.coin == 0
try:
    from conformance.specimens import unseen

    assert unseen.MODULES
except ModuleNotFoundError:  # some of them are of stable-baselines3
    pass

KINDS: tuple[Kind, ...] = ("form", "world", "unseen", "accused")
CORRECT = {
    f"{kind}-{each.id}": each for kind in KINDS for each in specimens(kind) if not each.broken
}


# SyncVectorEnv takes `reset_mask` out of the options, up to Gymnasium 1.4.
OF_SYNC = {"options_not_mutated"}

# The modes that are rarest elsewhere, and, nightly, others. `make matrix` tries all of them.
NAMES = some(["form-SameStep-dict", "form-Disabled-noise", *[*CORRECT][1::15]], 2)


@pytest.mark.parametrize("name", NAMES)
def test_no_check_reports_it(name: str) -> None:
    specimen = CORRECT[name]
    if specimen.family == "vec_env":
        pytest.importorskip("stable_baselines3")
    subject = examine(specimen.factory, family=specimen.family, seconds=4, **specimen.given)
    results = judge(subject, seconds=0.01, skip=TRAINING)
    found = bad(results)
    if name.startswith("unseen-"):  # they keep the contract, but not each recommendation
        found = {k: found[k] for k in found.keys() - OF_SYNC if results[k].severity == "error"}
    assert set(found) <= CLOSES | specimen.rightly.keys(), found
    assert not {k for k, result in results.items() if result.message == UNREACHED}
