"""What is wrong with a built site: links that lead nowhere, pages that nothing leads to, requests to elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches without being asked; a link of the text may lead elsewhere."""


class Page(HTMLParser):
    """The places of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name in ("id", "name"):
                self.places.add(value)
            if (tag, name) in LOADED:
                self.loaded.append(value)
            if (tag, name) in LOADED or (tag, name) == ("a", "href"):
                self.links.append(value)


def faults(site: Path) -> list[str]:
    """One line each; a site without any has none."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = [f"{name}: {fault}" for name in sorted(pages) for fault in _of_page(site, name, pages)]
    reached = _reached("index.html", pages)
    return found + [f"{name}: no page leads to it" for name in sorted(pages) if name not in reached | {"404.html"}]


def _of_page(site: Path, name: str, pages: dict[str, Page]) -> Iterator[str]:
    for link in pages[name].loaded:
        if urlsplit(link).netloc:
            yield f"{link} is loaded from elsewhere"
    for link in pages[name].links:
        # The page of a missing page does not know where it is shown.
        if urlsplit(link).scheme or urlsplit(link).netloc or name == "404.html":
            continue
        target, place = _target(name, link)
        if not (site / target).is_file():
            yield f"{link} leads nowhere"
        elif place and target in pages and place not in pages[target].places:
            yield f"{link}: {target} has no such place"


def _target(name: str, link: str) -> tuple[str, str]:
    """The file in the site that a link of the page `name` leads to, and the place in it."""
    parts = urlsplit(link)
    path = unquote(parts.path)
    return (normpath(join(dirname(name), path)) if path else name), unquote(parts.fragment)


def _reached(start: str, pages: dict[str, Page]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        name = waiting.pop()
        new = {_target(name, link)[0] for link in pages[name].links if not urlsplit(link).netloc} & set(pages) - reached
        reached |= new
        waiting += sorted(new)
    return reached
