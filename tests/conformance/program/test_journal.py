"""The journal that outlives a process."""

from __future__ import annotations

from pathlib import Path

from sb3compat.conformance.program.journal import journal, read_journal


def test_the_last_program_can_be_read_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with journal(str(path)) as write:
        write("env = make_env()")
        write("obs = env.reset()")
        assert read_journal(path) == ["env = make_env()", "obs = env.reset()"]
    # Shorter than the one before, of which nothing may be left.
    with journal(str(path)) as write:
        write("x = 'a\\nb'\ny = 1")
        assert read_journal(path) == ["x = 'a\\nb'\ny = 1"]
