"""Write PUBLIC_ADAPTERS.md from the verdicts."""

from __future__ import annotations

from conformance.specimens.public_adapters.judged import PAGE, page, verdicts

if __name__ == "__main__":
    PAGE.write_text(page(verdicts()), encoding="utf-8", newline="\n")
