"""The metadata that depend on where the repository is: its addresses, and the README's links.

No address is written down in the sources: it would be wrong in every fork. The workflow that makes
a release passes the address of the repository that it runs in as `SB3COMPAT_REPOSITORY`. With it,
the package gets its `Project-URL`s, and links and pictures of the README work on an index page.
Without it, a build has neither, and nothing that leads astray.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<picture>!?)(?P<text>\[[^\[\]]*\])\((?![a-z]+:|#)(?P<path>[^)#\s]+)")


class RepositoryHook(MetadataHookInterface):
    """Fills in `urls` and `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the two fields to the metadata."""
        repository = os.environ.get("SB3COMPAT_REPOSITORY", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository:
            text = with_addresses(text, f"{repository}/{{}}/v{metadata['version']}")
            metadata["urls"] = urls(repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def urls(repository: str) -> dict[str, str]:
    """The addresses of a repository's parts."""
    return {
        "Source": repository,
        "Issues": f"{repository}/issues",
        "Documentation": f"{repository}/blob/main/docs/index.md",
        # Exceptions lead there: sb3compat/errors.py reads it from the metadata.
        "Errors": f"{repository}/blob/main/docs/reference/errors.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


def with_addresses(text: str, base: str) -> str:
    """The text with whole addresses in place of relative links; `base` is of one release."""

    def whole(link: re.Match[str]) -> str:
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}{link['text']}({base.format(kind)}/{link['path']}"

    return LINK.sub(whole, text)
