"""What each kind of value accepts."""

from typing import Any

import pytest

from quintet.config.kinds import Choice, Flag, Globs, Kind, PathText, Seconds, Text, TextList, Url, WholeNumber

TRUE = [True, 1, "1", "true", "TRUE", "True", "yes", "YES", "on", "On", " on "]
FALSE = [False, 0, "0", "false", "FALSE", "no", "No", "off", "OFF"]


@pytest.mark.parametrize("raw", TRUE)
def test_true_has_these_spellings(raw: Any) -> None:
    assert Flag().read(raw) is True


@pytest.mark.parametrize("raw", FALSE)
def test_false_has_these_spellings(raw: Any) -> None:
    assert Flag().read(raw) is False


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (WholeNumber(1, 9), 3, 3),
        (WholeNumber(1, 9), "3", 3),
        (WholeNumber(1, 9), " 9 ", 9),
        (Seconds(), "0.5", 0.5),
        (Seconds(), 2, 2.0),
        (Seconds(), 0.25, 0.25),
        (Text(), "", ""),
        (Text(), "ü", "ü"),
        (PathText(), "a b", "a b"),
        (PathText(may_be_empty=True), "", ""),
        (Url(), "http://h:1/", "http://h:1"),
        (Url(), "https://[::1]:80/x", "https://[::1]:80/x"),
        (Url(), "", ""),
        (Choice(("a", "b")), "b", "b"),
        (TextList(), ["-x", ""], ("-x", "")),
        (TextList(), [], ()),
        (Globs(), "tests/**, check.sh\n.github/*\n", ("tests/**", "check.sh", ".github/*")),
        (Globs(), ["a,b", "**"], ("a,b", "**")),
        (Globs(), "", ()),
    ],
)
def test_good_values_are_read(kind: Kind, raw: Any, value: Any) -> None:
    assert kind.read(raw) == value


@pytest.mark.parametrize(
    ("kind", "raws"),
    [
        (Flag(), [2, -1, 1.0, "", "y", "t", "wahr", "truee", None, [], {}, float("nan")]),
        (WholeNumber(1, 9), [0, 10, -3, True, 3.0, "3.0", "x", "", None, [], {}, 10**400, "9" * 5000, float("inf")]),
        (Seconds(), [-0.1, "-1", True, "nan", "inf", float("nan"), float("inf"), 10**400, 1e300, "x", "", None, []]),
        (Text(), [3, True, None, [], {}, "a\0b"]),
        (Text(may_be_empty=False), ["", None]),
        (
            Globs(),
            [
                3,
                None,
                ["/etc/*"],
                "a,../b",
                ["a/../b"],
                ["~/x"],
                ["!a"],
                "a{b,c}",
                ["a{b,c}"],
                ["[z-a]"],
                ["[!]"],
                [""],
                ["."],
                "./",
                [3],
                {},
            ],
        ),
        (PathText(), ["", 3, None, "a\0b", []]),
        (
            Url(),
            ["localhost", "ftp://x", "http://", "http://h:port", "http://h:99999", "http://a b", 3, None, "http://["],
        ),
        (Choice(("a",)), ["A", "", None, [], {}, 1]),
        (TextList(), ["-x", None, [1], ["a\0"], {}, [None]]),
    ],
)
def test_bad_values_are_refused(kind: Kind, raws: list[Any]) -> None:
    for raw in raws:
        with pytest.raises(ValueError):  # noqa: PT011 - the caller adds what was found
            kind.read(raw)
    assert kind.allowed
