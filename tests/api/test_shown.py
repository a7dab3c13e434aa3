"""The last lines of a terminal, as a message holds them."""

import httpx
import pytest

from quintet.api.backend import TerminalView
from quintet.api.cao_backend import CaoBackend
from quintet.api.client import ApiClient
from quintet.api.quintet_backend import QuintetBackend
from quintet.api.shown import MOST_CHARACTERS, last_lines


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\n\n  two  \n\n\n", "one / two"),
        ("\x1b[1;31mError:\x1b[0m no\x1b[?25h", "Error: no"),
        ("\x1b]0;a title\x07said\x1b]8;;http://x\x1b\\link\x1b(B", "saidlink"),
        ("half\x1b[", "half"),
        ("a\x07b\x00c\u202ed", "abcd"),
        ("first\rsecond\r\nthird", "first / second / third"),
        ("\n".join("123456789"), "4 / 5 / 6 / 7 / 8 / 9"),
    ],
)
def test_the_last_lines(shown: str, said: str) -> None:
    assert last_lines(shown) == said


def test_their_length_is_bounded() -> None:
    said = last_lines("x" * 1_000_000 + "the end")
    assert len(said) == MOST_CHARACTERS + 2
    assert said.endswith("the end")


def test_another_server_is_asked_for_its_output() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/output"):
            return httpx.Response(200, json={"output": "\x1b[31mno login\x1b[0m\n"})
        return httpx.Response(404, json={"detail": "not here"})

    client = ApiClient("http://127.0.0.1:1", "", transport=httpx.MockTransport(answer))
    terminal = TerminalView(id="deadbeef")
    assert CaoBackend(client).get_last_lines(terminal) == "no login"
    assert QuintetBackend(client).get_last_lines(terminal) == "", "ours tells it with the terminal"
