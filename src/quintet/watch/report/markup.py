"""HTML and SVG that is put together from parts; whatever is not markup already is escaped."""

import html
from collections.abc import Iterable, Mapping

from quintet.watch.runs.formatting import printable
from quintet.watch.runs.timeline import SvgElement


class Markup(str):
    """A text that is HTML already: it is not escaped again."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """A text as HTML: markup as it is, everything else with its special characters replaced."""
    return text if isinstance(text, Markup) else Markup(html.escape(printable(text)))


def join(parts: Iterable[str]) -> Markup:
    """Several parts in a row."""
    return Markup("".join(map(escape, parts)))


def element(name: str, *children: str, attributes: Mapping[str, object] | None = None, css: str = "") -> Markup:
    """An element with what is in it; `css` is its class."""
    given = {**({"class": css} if css else {}), **(attributes or {})}
    written = "".join(f' {key}="{escape(str(value))}"' for key, value in given.items())
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def svg(drawing: SvgElement | str) -> Markup:
    """A drawing as SVG."""
    if isinstance(drawing, str):
        return escape(drawing)
    space = {"xmlns": "http://www.w3.org/2000/svg"} if drawing.tag == "svg" else {}
    return element(drawing.tag, *map(svg, drawing.children), attributes={**drawing.attributes, **space})
