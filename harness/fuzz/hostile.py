"""Texts, bytes and JSON as an enemy or an accident would write them."""

from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import strategies as st

from tests.loop.texts import MARKUP_LINES, VERDICT_LINES

SCRAPS: Final = (
    "\0",
    "\ud800",
    "\udfff\ud800",
    "\ufeff",
    "\u202eABC\u202c",
    "\u2066\u200f",
    "e\u0301\u0301\u0301\u0301",
    "👩‍👩‍👧‍👦",
    "\u2028",
    "\x85",
    "\x1b[31m",
    "\x1b[",
    "\x1b]0;title",
    "\x1b]8;;http://localhost\x1b\\",
    "\x1bP1;2|",
    "\x1b[999999999999C",
    "\x9b2J",
    "\x07\x08\x7f",
    "\r",
    "\t\t",
    "x" * 3000,
    "> " * 700,
    "`" * 500,
    "*" * 600,
    "[" * 990,
    "{" * 400,
    "<a " * 300,
    "9" * 4400,
    "9" * 320,
    "-1",
    "1e999",
    "NaN",
    "İıſK",
    "٣٤",
    "²",
    "$(reboot)",
    "#(reboot)",
    "../../etc/passwd",
    "<script>",
    "&amp;",
    "|",
    "%s%n",
    "{}{0}",
    "{{explore}}",
    "*** SCENARIO TEST ***",
    "*** ORIGINAL EXPLORE SUMMARY ***",
    "*** SCENARIO TEST",
)
"""what has broken a program somewhere; also halves of what a parser looks for"""

ENDS: Final = ("\n", "\r\n", "\r", "", " ", "\n\n", "\x1b[0m\n", "\u2028")

T = TypeVar("T")


def one_of(*found: T) -> st.SearchStrategy[T]:
    """One of these; unlike `sampled_from` it does not write all of them out where an example fails."""
    return st.integers(0, len(found) - 1).map(lambda number: found[number])


any_text = st.text(st.characters(codec=None), max_size=12)
"""any characters at all, also surrogates that stand alone"""


def texts(scraps: Sequence[str] = (), size: int = 10) -> st.SearchStrategy[str]:
    """A text of scraps: those of the format at hand, those of any, and plain noise; with mixed line ends."""
    some = one_of(*scraps, *SCRAPS) | any_text
    if scraps:
        some = one_of(*scraps) | some
    pairs = st.lists(st.tuples(some, one_of(*ENDS)), max_size=size)
    return pairs.map(lambda found: "".join(part + end for part, end in found))


replies = texts((*VERDICT_LINES, *MARKUP_LINES))


def as_bytes(found: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    """A text as a file holds it: in UTF-8, torn in the middle, or in something else."""
    whole = found.map(lambda text: text.encode("utf-8", "surrogatepass"))
    torn = st.tuples(whole, st.integers(0, 40)).map(lambda pair: pair[0][pair[1] :])
    other = found.map(lambda text: text.encode("utf-16", "surrogatepass"))
    return whole | torn | other | st.binary(max_size=40)


def _quoted(text: str) -> str:
    """A JSON text with its control characters and surrogates escaped, and everything else as it is."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\u{ord(c):04x}" if c < " " or "\ud800" <= c <= "\udfff" else c for c in plain) + '"'


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


NUMBERS: Final = (
    "0", "1", "-1", "2", "7", "0.5", "-0.0", "1e999", "-1e999", "NaN", "Infinity", "1e-999", "9" * 30, "9" * 400,
    "9" * 4301, "1700000000", "253402300800", "-62135596800", "1e18",
)  # fmt: skip


def json_values(words: Sequence[str] = (), keys: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """The text of a JSON value: with the words and keys of a format, twin keys, huge numbers and deep nesting."""
    some = texts(words, size=3)
    leaves = (
        one_of("null", "true", "false", *NUMBERS)
        | one_of(*words, "", "x").map(_quoted)
        | some.map(_quoted)
        | st.integers(970, 1010).map(nested)
        | st.just(nested(3_000))
    )
    names = one_of(*keys, "x") | any_text

    def bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.lists(st.tuples(names, inner), max_size=6)
        return st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]") | pairs.map(json_object)

    return st.recursive(leaves, bigger, max_leaves=8)


def json_object(pairs: Sequence[tuple[str, str]]) -> str:
    """The text of an object with these members, the same key twice where it comes twice."""
    return "{" + ",".join(f"{_quoted(name)}: {value}" for name, value in pairs) + "}"


def json_objects(keys: Sequence[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An object with members that a reader looks for, and a few that it does not."""
    names = one_of(*keys) | any_text
    return st.lists(st.tuples(names, values), max_size=8).map(json_object)
