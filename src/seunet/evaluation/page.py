"""A page made of headings, sentences, tables and pictures: as Markdown beside its pictures, or as one HTML file."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seunet.look.css import look_css

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; `code`, *stress* and **bold** as in Markdown."""

    text: str


@dataclass(frozen=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A PNG file, what it shows, and how it is drawn; None keeps it as it is."""

    path: Path
    caption: str
    draw: Callable[[], Figure] | None


Block = Heading | Text | Table | Picture


def write_pictures(blocks: Iterable[Block]) -> None:
    """Draw every picture of a page; its HTML has them inside."""
    from seunet.evaluation.figures.style import write_png

    for block in blocks:
        if isinstance(block, Picture) and block.draw is not None:
            write_png(block.draw(), block.path)


def as_markdown(blocks: Iterable[Block], beside: Path) -> str:
    """Pictures are linked from the folder `beside`."""
    return "\n\n".join(_markdown(block, beside) for block in blocks) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """The one place that draws a table in Markdown; cells are as they are printed."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _markdown(block: Block, beside: Path) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Text(text):
            return text
        case Table(header, rows):
            return markdown_table(header, rows)
        case Picture(path, caption, _):
            return f"![{caption}]({path.relative_to(beside).as_posix()})\n\n*{caption}*"


def as_html(title: str, blocks: Iterable[Block]) -> str:
    """One self-contained file in the look of all our pages: style and pictures are inside."""
    body = "\n".join(_html(block) for block in blocks)
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<title>{html.escape(title)}</title><style>\n{look_css()}</style>"
    )
    page = f'<body><main class="page">\n{body}\n</main></body>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n{page}</html>\n'


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Table(header, rows):
            top = "".join(f"<th>{_inline(cell)}</th>" for cell in header)
            body = "\n".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in rows)
            # A table wider than the window is moved by the arrow keys, once it has the focus.
            whole = f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table>"
            return f'<div class="wide" tabindex="0" role="region" aria-label="Table">{whole}</div>'
        case Picture(path, caption, _):
            data = base64.b64encode(path.read_bytes()).decode()
            text = _inline(caption)
            alt = html.escape(caption, quote=True)
            return (
                f'<figure><img alt="{alt}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'
            )


def _inline(text: str) -> str:
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    escaped = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escaped)
