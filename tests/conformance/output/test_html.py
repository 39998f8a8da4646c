from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from sb3compat.conformance.findings import Finding
from sb3compat.conformance.output import render
from tests.conformance.sample import sample


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_is_well_formed_and_loads_nothing() -> None:
    text = render(sample(), "html")
    page = Page(text)
    assert page.open == []
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 1
    assert not {"img", "iframe", "object"} & set(tags)
    assert all("src" not in attributes for _, attributes in page.elements)
    links = [attributes["href"] for tag, attributes in page.elements if "href" in attributes]
    assert all(link.startswith(("https://", "#", "data:")) for link in links)
    assert "url(" not in text
    assert "@import" not in text
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


HOSTILE = """</script></style><script>alert("1")</script> ' " onmouseover='x' {{ 7 * 7 }} <!--"""


def test_html_escapes_all_that_comes_from_the_environment() -> None:
    finding = Finding(HOSTILE, HOSTILE, HOSTILE, 2, 1)
    moments = tuple(
        replace(each, observation=HOSTILE, reward=HOSTILE, flags=HOSTILE, note=HOSTILE)
        for each in sample()["terminal_observation_is_last"].timeline
    )
    told = replace(
        sample()["terminal_observation_is_last"],
        message=HOSTILE,
        contract=HOSTILE,
        reproduction=HOSTILE,
        trace=HOSTILE,
        finding=finding,
        timeline=moments,
    )
    bare = replace(told, check_id="dones_shape", finding=None, timeline=())
    report = replace(
        sample(),
        target=HOSTILE,
        notes=(HOSTILE,),
        versions={HOSTILE: HOSTILE},
        results=(told, bare),
    )
    text = render(report, "html")
    page, usual = Page(text), Page(render(sample(), "html"))
    assert page.open == []
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in usual.elements}
    assert [tag for tag, _ in page.elements].count("script") == 1
    names = {name for _, attributes in page.elements for name in attributes}
    assert names <= {name for _, attributes in usual.elements for name in attributes}
    # The target twice, a note, a version and its name; the contract and the message of both in the
    # table; and of each failure all that it has.
    assert "".join(page.texts).count(HOSTILE) >= 5 + 4 + 2 * 3
