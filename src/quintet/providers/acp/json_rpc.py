"""JSON-RPC over pipes: bytes cut into lines, lines read as messages, and messages to send. Nothing here raises."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from quintet.providers.json_lines import as_object, json_object, text_in

LONGEST_LINE: Final = 64 << 20
"""bytes of a line that is read; a longer one is dropped"""
NO_SUCH_METHOD: Final = -32601
NOT_LOGGED_IN: Final = -32000
Id = int | str


@dataclass(frozen=True)
class AgentRequest:
    """Something that the agent wants to have an answer to."""

    id: Id
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class AgentNotification:
    """Something that the agent tells."""

    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class RpcError:
    """Why a request was not carried out."""

    code: int
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """The answer to a request of ours."""

    id: Id
    result: Mapping[str, Any]
    error: RpcError | None = None


Message = AgentRequest | AgentNotification | Response


class LineReader:
    """Cuts a stream of bytes into lines. The work is the same however small the pieces are that a line comes in."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that these bytes complete."""
        *ended, rest = data.split(b"\n")
        for end in ended:
            whole = self._size + len(end) <= self._longest
            line = b"".join((*self._pieces, end)) if whole else b""
            self._pieces, self._size = [], 0
            if line.strip():
                yield line
        self._size += len(rest)
        if self._size <= self._longest:
            self._pieces.append(rest)
        else:
            self._pieces.clear()


def read_message(line: bytes) -> Message | None:
    """The message in a line; None where there is none."""
    source = json_object(line)
    params, number = as_object(source.get("params")), source.get("id")
    if "method" in source:
        method = text_in(source, "method")
        if "id" not in source:
            return AgentNotification(method, params)
        return AgentRequest(number, method, params) if _is_id(number) else None
    if not _is_id(number) or not ("result" in source or "error" in source):
        return None
    error = source.get("error")
    return Response(number, as_object(source.get("result")), None if error is None else _read_error(error))


def _is_id(value: Any) -> TypeGuard[Id]:
    return type(value) in (int, str)


def _read_error(raw: Any) -> RpcError:
    """The error of an answer; some agents put a text in place of an object, or of its data."""
    source, data = as_object(raw), as_object(raw).get("data")
    code = source.get("code")
    message = text_in(source, "message") or (raw if isinstance(raw, str) else "")
    details = {"details": data} if isinstance(data, str) else as_object(data)
    return RpcError(code if type(code) is int else 0, message, details)


class Calls:
    """The requests that were sent, by the numbers that their answers will have."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[Id, str] = {}

    def request(self, method: str, params: Mapping[str, Any]) -> bytes:
        """The line that asks for something."""
        self._last += 1
        self._open[self._last] = method
        return _line({"id": self._last, "method": method, "params": params})

    def answered(self, response: Response) -> str:
        """The method that an answer belongs to; empty where nothing was asked, or it was answered before."""
        return self._open.pop(response.id, "")


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """The line that tells something."""
    return _line({"method": method, "params": params})


def result(request: Id, value: Mapping[str, Any]) -> bytes:
    """The line that answers a request of the agent's."""
    return _line({"id": request, "result": value})


def no_such_method(request: Id, method: str) -> bytes:
    """The line that says that a request of the agent's is not known."""
    return _line({"id": request, "error": {"code": NO_SUCH_METHOD, "message": f"Method not found: {method[:200]}"}})


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode("ascii") + b"\n"
