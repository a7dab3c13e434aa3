"""The pane of a host: lines fit, and the last one shows what is typed."""

import pytest

from quintet.providers.acp.terminal_text import columns, fold, shorten
from quintet.providers.acp.tools import ToolCall
from quintet.providers.acp.turn import TurnEnd
from quintet.providers.acp.usage import NO_TOKENS
from quintet.providers.acp.view import HostPane


def test_columns_of_wide_and_of_joined_letters() -> None:
    assert [columns(text) for text in ("abc", "你好", "e\u0301", "\u200b", "😀")] == [3, 4, 1, 0, 2]


@pytest.mark.parametrize("text", ["a b c d", "word " * 50, "x" * 100, "你好 " * 30, "  indented text here", " " * 50])
@pytest.mark.parametrize("width", [1, 5, 20])
def test_folded_lines_fit_and_nothing_is_lost(text: str, width: int) -> None:
    pieces = list(fold(text, width))
    assert all(columns(piece) <= max(width, 2) for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_long_line_is_folded_in_a_moment() -> None:
    assert len(list(fold("word " * 400_000, 76))) > 20_000


def test_a_text_is_shortened_to_columns() -> None:
    assert shorten("one\n two\tthree", 80) == "one two three"
    assert shorten("abcdef", 4) == "abc…"
    assert columns(shorten("你好" * 50, 9)) <= 9


def pane(width: int = 80) -> tuple[HostPane, list[bytes]]:
    out: list[bytes] = []
    return HostPane(out.append, lambda: width, "Tester"), out


def test_no_line_is_wider_than_the_terminal() -> None:
    shown, out = pane(40)
    shown.set_state("working", "Working since 12:00:00 · $ " + "make " * 20)
    shown.prompt("do " * 100 + "\n" * 10, "server")
    shown.say("你好" * 60 + "\n- one " * 30)
    shown.think("hm " * 100)
    call = ToolCall("t", kind="execute", status="failed", given={"command": "x" * 300}, output="y" * 300, exit_code=3)
    shown.tool(call)
    shown.ask("write " * 30, ["allow " * 20])
    shown.turn_end(TurnEnd("error", "", NO_TOKENS, {"kind": "login", "text": "no " * 60, "resets_at": None}), 3.0)
    shown.draft = "typed 你好 " * 20
    shown.flush()
    lines = b"".join(out).decode().split("\x1b]2;")[1].partition("\x1b\\")[2].replace("\r\x1b[K", "\r\n").split("\r\n")
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"):
        lines = [line.replace(code, "") for line in lines]
    assert max(map(columns, lines)) < 40


def test_words_of_two_parts_stay_two_words_at_the_end_of_a_line() -> None:
    shown, out = pane(40)
    shown.say(("word " * 20)[:33] + "last ")
    shown.say("next")
    shown.end_parts()
    shown.flush()
    assert "lastnext" not in b"".join(out).decode()


def test_nothing_new_is_nothing_written() -> None:
    shown, out = pane()
    shown.set_state("ready")
    shown.flush()
    count = len(out)
    shown.flush()
    assert len(out) == count


def test_the_end_of_a_long_draft_is_shown() -> None:
    shown, out = pane(30)
    shown.draft = "the beginning " * 5 + "the end"
    shown.flush()
    assert out[-1].decode().endswith("the end")
    assert columns(out[-1].decode()) < 30


def test_a_failure_says_its_kind_and_its_end() -> None:
    shown, out = pane()
    failed = {"kind": "usage_limit", "text": "used up", "resets_at": 1_800_000_000.0}
    shown.turn_end(TurnEnd("error", "", NO_TOKENS, failed), 3.0)
    shown.flush()
    assert "usage limit: used up (until " in b"".join(out).decode()
