"""Files of expected failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.commands.shell import TINY, refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[dones_bool_aray]\nreason = 'x'", "Did you mean 'dones_bool_array'?"),
        ("[dones_bool_array]\nreeson = 'x'", "got the key 'reeson'. Take it out."),
        ("[dones_bool_array]\nlink = 'x'", "got reason='', link='x'. Say why it fails."),
        ("dones_bool_array = 'x'", "got dones_bool_array = 'x'. Write it as a table."),
        ("[dones_bool_array", "(at end of document). Fix its syntax."),
    ],
)
def test_wrong_files_are_refused(
    text: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "known.toml").write_text(text)
    said = refused(
        capsys, "check", f"{TINY}:boom", f"--expected-failures={tmp_path / 'known.toml'}"
    )
    assert message in said
    assert "known.toml" in said
