"""What goes through pipes: by reference where it can, by value where it must, or refused."""

from __future__ import annotations

from typing import Any

import pytest

import sb3compat
from tests.parallel.failing import ACTIONS, known, opened
from tests.parallel.known import Known


class Generating(Known):
    def generate(self) -> Any:
        return (x for x in ())


@pytest.mark.usefixtures("nobody_is_left")
def test_result_that_cannot_be_pickled_is_refused() -> None:
    env = opened([*known()[:4], lambda: Generating(4)])
    with pytest.raises(sb3compat.ConversionError, match=r"can be pickled.*generator"):
        env.env_method("generate", indices=4)
    env.step(ACTIONS)
