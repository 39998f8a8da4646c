"""Messages between two processes."""

from __future__ import annotations

import io

from sb3compat.conformance.run.wire import receive


def test_a_message_that_is_cut_off_in_its_length_is_the_end() -> None:
    assert receive(io.BytesIO(b"\0\0\0")) is None
