"""Bytes cut into lines, and lines read as messages."""

import pytest

from quintet.providers.acp.json_rpc import (
    AgentNotification,
    AgentRequest,
    Calls,
    LineReader,
    Message,
    Response,
    RpcError,
    read_message,
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_in_any_pieces(size: int) -> None:
    data, reader = b"one\r\n\n  \ntwo\nthree", LineReader()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [line.strip() for piece in pieces for line in reader.feed(piece)] == [b"one", b"two"]


def test_a_line_that_is_too_long_is_dropped_and_the_next_one_read() -> None:
    reader = LineReader(longest=10)
    assert list(reader.feed(b"x" * 8)) == []
    assert list(reader.feed(b"y" * 8 + b"\nshort\n" + b"z" * 30)) == [b"short"]
    assert list(reader.feed(b"z\n0123456789\n")) == [b"0123456789"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": 1, "result": {"a": 1}}', Response(1, {"a": 1})),
        (b'{"id": 1, "result": null}', Response(1, {})),
        (b'{"id": 1, "error": {"code": 5, "message": "m"}}', Response(1, {}, RpcError(5, "m"))),
        (b'{"id": 1, "error": {"code": "x", "data": "why"}}', Response(1, {}, RpcError(0, "", {"details": "why"}))),
        (b'{"id": 1, "error": "plain"}', Response(1, {}, RpcError(0, "plain"))),
        (b'{"id": "a", "method": "m"}', AgentRequest("a", "m", {})),
        (b'{"method": "m", "params": [1]}', AgentNotification("m", {})),
        (b'{"id": 1}', None),
        (b'{"id": true, "result": {}}', None),
        (b'{"id": 1.5, "method": "m"}', None),
        (b"[]", None),
        (b"\xff\xfe", None),
        (b"[" * 200_000, None),
        (b'{"id": ' + b"9" * 5000 + b', "result": {}}', None),
    ],
)
def test_what_a_line_means(line: bytes, message: Message | None) -> None:
    assert read_message(line) == message


def test_an_answer_belongs_to_its_request_once() -> None:
    calls = Calls()
    calls.request("a", {})
    calls.request("b", {})
    assert [calls.answered(Response(number, {})) for number in (2, 2, 1, 99, "1")] == ["b", "", "a", "", ""]
