"""The log of a child process."""

from __future__ import annotations

from sb3compat.conformance.run.log import last_words


def test_last_words_leave_out_stacks() -> None:
    log = "Check failed: 2 vs. 3\n    @  0x7f  std::thread::_State()\n"
    fatal = f"{log}Fatal Python error: Aborted\n\nThread 0x7f:\n  File ...\nExtension modules: ..."
    assert last_words(log) == ["Check failed: 2 vs. 3"]
    assert last_words(fatal) == ["Check failed: 2 vs. 3", "Fatal Python error: Aborted"]
