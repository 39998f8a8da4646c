"""Messages between two processes."""

from __future__ import annotations

import io

from sb3compat.conformance.run.wire import receive, send


def test_messages_arrive_one_by_one_until_the_end() -> None:
    stream = io.BytesIO()
    for message in (b"first", b"x" * 10**5):
        send(stream, message)
    stream.seek(0)
    assert [receive(stream), receive(stream)] == [b"first", b"x" * 10**5]
    assert receive(stream) is None


def test_a_message_that_is_cut_off_in_its_length_is_the_end() -> None:
    assert receive(io.BytesIO(b"\0\0\0")) is None
