"""Removing what steers a terminal from a text: escape sequences and control characters."""

import re

_ESCAPES = r"""
    \x1b\[ [0-?]* [ -/]* [@-~]?                             # colours, cursor
  | \x1b[\]PX^_] [^\x07\x1b]{0,400} (?: \x07 | \x1b\\ )?    # titles, links; bounded, so that none can hide a text
  | \x1b [ -/]* [0-~]?
"""
_ESCAPE = re.compile(_ESCAPES, re.VERBOSE)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""what controls a terminal or changes the direction of writing; not tabs and line ends"""
_ESCAPE_OR_CONTROL = re.compile(rf"{_ESCAPES} | {CONTROLS.pattern}", re.VERBOSE)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def without_escapes(text: str) -> str:
    """The text without escape sequences."""
    return _ESCAPE.sub("", text)


def plain(text: str) -> str:
    """The text without escape sequences and without control characters but tabs and line ends."""
    return _ESCAPE_OR_CONTROL.sub("", text)


def only_colours(text: str) -> str:
    """The text with the escape sequences of colours and no others: it can do nothing but colour its letters."""
    return _ESCAPE_OR_CONTROL.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", text)
