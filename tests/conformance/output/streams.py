"""What a report is written to."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """A terminal of 72 columns, by the fixture `environment`."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class AsciiFile(io.StringIO):
    encoding = "ascii"
