"""Configuration of the site: `make docs` builds it, and takes a warning for an error."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import generate  # noqa: E402

import sb3compat  # noqa: E402

project = "sb3compat"
author = "The sb3compat developers"
project_copyright = author
version = release = sb3compat.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["examples", "reference/_*.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "fieldlist"]
# The Markdown files link to sources, to be read in a clone. On the site these are downloads.
suppress_warnings = ["myst.xref_ambiguous"]

# Docstrings write code in single backticks.
default_role = "code"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# Quotation marks of error texts stay as they are typed.
smartquotes = False

html_theme = "furo"
html_title = f"sb3compat {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True


# Pages whose text is a file elsewhere in the repository.
COPIES = {
    "reference/changelog": "CHANGELOG.md",
    "reference/kit-results": "conformance/RESULTS.md",
    "reference/measurements": "benchmarks/RESULTS.md",
    "reference/published-adapters": "conformance/PUBLIC_ADAPTERS.md",
    "reference/unseen-environments": "conformance/UNSEEN.md",
    "contributing": "CONTRIBUTING.md",
}
PAGE_OF = {path: docname for docname, path in COPIES.items()} | {"README.md": "index"}
LINK = re.compile(r"(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Take the text of a copied page from its file, and let links lead to pages of the site."""
    page = ROOT / "docs" / f"{docname}.md"
    original = ROOT / COPIES[docname] if docname in COPIES else page
    text = original.read_text(encoding="utf-8") if docname in COPIES else source[0]
    source[0] = LINK.sub(lambda link: _linked(link, original.parent, page.parent), text)


def _linked(link: re.Match[str], old: Path, new: Path) -> str:
    """A relative link from the folder `old`, as one from `new`; a link to a folder is none."""
    text, path, anchor = link[1], link[2], link[3] or ""
    target = (old / path).resolve()
    if not target.is_relative_to(ROOT) or target.is_dir():
        return text[1:-1]
    page = PAGE_OF.get(target.relative_to(ROOT).as_posix())
    if page is not None:
        target = ROOT / "docs" / f"{page}.md"
    # Anything else outside of the site becomes a download, also where it is Markdown.
    scheme = "" if target.is_relative_to(ROOT / "docs") else "path:"
    anchor = "" if scheme else anchor
    return f"{text}({scheme}{Path(os.path.relpath(target, new)).as_posix()}{anchor})"


def _skip(app: Sphinx, what: str, name: str, value: object, skip: bool, options: object) -> bool:
    """Of the module of the exceptions, the functions are for this package alone."""
    own = getattr(value, "__module__", None) == "sb3compat.errors" and not isinstance(value, type)
    # A method has its class in its name, and a cached function is no `FunctionType`.
    return skip or (own and getattr(value, "__qualname__", ".") == name)


def _describe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page that has no description its first paragraph, which search engines show."""
    if doctree is None or 'name="description"' in context["metatags"]:
        return
    texts = [each.astext() for each in doctree.findall(nodes.paragraph)]
    # A table and a list have paragraphs as well, of a word or two.
    first = next((text for text in texts if len(text) > 60), "")
    if first:
        text = escape(textwrap.shorten(first, 160, placeholder=" …"), quote=True)
        context["metatags"] += f'<meta content="{text}" name="description" />'


def _contents(app: Sphinx, domain: str, objtype: str, contentnode: nodes.Element) -> None:
    """Let the contents of a page name what is public, without the parts of each class."""
    if objtype in ("attribute", "method", "property") and contentnode.parent is not None:
        for signature in contentnode.parent.findall(addnodes.desc_signature):
            signature["_toc_name"] = ""


def setup(app: Sphinx) -> None:
    """Write the parts of the pages that come from the code."""
    app.connect("builder-inited", lambda app: generate.write_parts())
    app.connect("source-read", _read)
    app.connect("autodoc-skip-member", _skip)
    app.connect("object-description-transform", _contents)
    app.connect("html-page-context", _describe)
