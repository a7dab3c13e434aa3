"""The client, over a transport that answers what a test wants: exact requests, and what becomes of every answer."""

import ssl
from collections.abc import Callable
from urllib.parse import parse_qsl

import httpx
import pytest

from quintet.api.backend import Backend, TerminalView
from quintet.api.cao_backend import LONGEST_QUERY, CaoBackend
from quintet.api.client import ApiClient
from quintet.api.models import Failure, TokenCount
from quintet.api.quintet_backend import QuintetBackend, backend_of
from quintet.api.status import FailureKind, TerminalStatus
from quintet.errors import ApiError, OutcomeUnknown, PassingFault, Refused, TerminalGone

Answer = Callable[[httpx.Request], httpx.Response]
OK = {"id": "aa00bb11", "session_name": "s", "status": "idle", "output": "text", "success": True}


class Wire:
    """Every request, and one answer for all of them."""

    def __init__(self, answer: Answer | None = None, token: str = "") -> None:
        self.requests: list[httpx.Request] = []
        self.answer: Answer = answer or (lambda _: httpx.Response(200, json=OK))
        self.client = ApiClient("http://127.0.0.1:9889", "/pro ject", token, httpx.MockTransport(self._handle))
        self.api = CaoBackend(self.client)
        self.own = QuintetBackend(self.client)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.answer(request)

    @property
    def line(self) -> str:
        (request,) = self.requests
        return f"{request.method} {request.url.raw_path.decode().partition('?')[0]}"

    @property
    def params(self) -> list[tuple[str, str]]:
        (request,) = self.requests
        return parse_qsl(request.url.query.decode(), keep_blank_values=True)


def test_create_session() -> None:
    wire = Wire(lambda _: httpx.Response(201, json=OK))
    answer = wire.api.create_session("system_analyst", "claude_code")
    assert wire.line == "POST /sessions"
    assert wire.params == [
        ("provider", "claude_code"),
        ("agent_profile", "system_analyst"),
        ("working_directory", "/pro ject"),
    ]
    assert (answer.id, answer.session_name) == ("aa00bb11", "s")


def test_create_session_with_everything() -> None:
    wire = Wire()
    wire.own.create_session("p", "codex", model="m", args=["-a", "b c"], permissions="ask", session_name="mine")
    assert ("session_name", "mine") in wire.params
    assert {("model", "m"), ("permissions", "ask")} <= set(wire.params)
    assert [value for name, value in wire.params if name == "args"] == ["-a", "b c"]


def test_create_terminal() -> None:
    wire = Wire()
    wire.api.create_terminal("s1", "tester", "codex")
    assert wire.line == "POST /sessions/s1/terminals"
    assert dict(wire.params) == {
        "provider": "codex",
        "agent_profile": "tester",
        "working_directory": "/pro ject",
        "defer_init": "true",
    }


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("a b", "a%20b"), ("a/b", "a%2Fb"), ("ü?#", "%C3%BC%3F%23"), ("a%2Fb", "a%252Fb"), ("x:1", "x%3A1")],
)
def test_odd_session_names_are_quoted(name: str, quoted: str) -> None:
    wire = Wire()
    wire.api.create_terminal(name, "tester", "codex")
    assert wire.line == f"POST /sessions/{quoted}/terminals"


def test_odd_terminal_ids_are_quoted() -> None:
    wire = Wire()
    wire.api.get_terminal("../x?y")
    assert wire.line == "GET /terminals/..%2Fx%3Fy"


@pytest.mark.parametrize("message", ["hello", "a&b=c+d %20", "líne 1\nline 2\t`x` \"'", "/rename a-b", "🎼"])
def test_send_input(message: str) -> None:
    wire = Wire()
    wire.api.send_input("aa00bb11", message, "dispatch")
    assert wire.line == "POST /terminals/aa00bb11/input"
    assert wire.params == [("message", message)]
    assert wire.requests[0].content == b""


def test_input_to_our_own_server_travels_in_the_body() -> None:
    wire = Wire()
    wire.own.send_input("aa00bb11", "long", "d1")
    assert wire.params == []
    assert wire.requests[0].content.replace(b" ", b"") == b'{"message":"long","dispatch_id":"d1"}'


def found(answer: httpx.Response) -> Backend:
    """The backend for a server that says this of its health."""
    wire = Wire(lambda _: answer)
    backend = backend_of(wire.client)
    assert wire.line == "GET /health"
    return backend


def test_a_server_says_whose_it_is() -> None:
    assert isinstance(found(httpx.Response(200, json={"service": "quintet"})), QuintetBackend)
    other = found(httpx.Response(200, json={"service": "cli-agent-orchestrator"}))
    assert isinstance(other, CaoBackend)
    assert not isinstance(other, QuintetBackend)


def test_a_torn_answer_does_not_make_a_stranger_of_our_own_server() -> None:
    """It is a fault that may pass, so whoever asks asks again."""
    answers = [b'{"service": "quin', b'{"service": "quintet"}']
    wire = Wire(lambda _: httpx.Response(200, content=answers.pop(0)))
    with pytest.raises(PassingFault):
        backend_of(wire.client)
    assert isinstance(backend_of(wire.client), QuintetBackend)


@pytest.mark.parametrize("answer", [httpx.Response(404), httpx.Response(200, text="<html>")])
def test_a_server_without_health_is_a_stranger(answer: httpx.Response) -> None:
    assert not isinstance(found(answer), QuintetBackend)


def test_our_own_server_is_asked_whether_it_lets_us_in() -> None:
    gone, refused = httpx.Response(404, json={}), httpx.Response(401, json={})
    Wire(lambda _: gone).own.check_token()
    with pytest.raises(Refused):
        Wire(lambda _: refused).own.check_token()
    Wire(lambda _: refused).api.check_token()


def test_what_a_server_tells_of_a_terminal() -> None:
    told = {"id": "aa00bb11", "status": "error", "reason": "killed", "typed_after": 3, "dispatch_id": "d1"}
    told |= {"usage": {"input_tokens": 7}, "failure": {"kind": "login", "text": "no"}, "last_screen": "a\nb"}
    wire = Wire(lambda _: httpx.Response(200, json=told))
    view = wire.own.get_terminal("aa00bb11")
    assert (view.reason, view.typed_after, view.dispatch_id) == ("killed", 3, "d1")
    assert view.usage == TokenCount(input=7)
    assert view.failure == Failure(kind=FailureKind.LOGIN, text="no")
    assert wire.own.get_last_lines(view) == "a / b"
    assert wire.api.get_terminal("aa00bb11") == TerminalView(id="aa00bb11", status=TerminalStatus.ERROR)


@pytest.mark.parametrize("odd", [None, 5, "x", [], {"kind": 5, "input_tokens": -1}, True, -1])
def test_what_is_not_what_it_should_be_counts_as_not_told(odd: object) -> None:
    names = ("reason", "doubt", "typed_after", "dispatch_id", "start_seconds", "usage", "failure", "status")
    wire = Wire(lambda _: httpx.Response(200, json=dict.fromkeys(names, odd)))
    view = wire.own.get_terminal("aa00bb11")
    assert view.status is TerminalStatus.UNKNOWN
    assert (view.usage, view.failure) == (None, None)


def test_a_terminal_that_our_own_server_cannot_start_is_explained_in_its_words() -> None:
    wire = Wire(lambda _: httpx.Response(409, json={"detail": "codex is not installed"}))
    with pytest.raises(Refused, match=r"^codex is not installed$"):
        wire.own.create_session("p", "codex")


def test_delete_session() -> None:
    wire = Wire()
    wire.api.delete_session("s 1")
    assert wire.line == "DELETE /sessions/s%201"
    Wire(lambda _: httpx.Response(404)).api.delete_session("gone already")


def test_what_fits_is_measured_as_it_travels() -> None:
    api = Wire().api
    assert api.fits("x" * LONGEST_QUERY)
    assert not api.fits("x" * (LONGEST_QUERY + 1))
    assert not api.fits("\n" * (LONGEST_QUERY // 3 + 1))
    assert Wire().own.fits("\n" * 1_000_000)


def test_permission_is_the_key_that_the_provider_names_and_elsewhere_a_y() -> None:
    own, other = Wire(), Wire()
    own.own.accept_permission("aa00bb11")
    assert (own.line, own.params) == ("POST /terminals/aa00bb11/key", [("key", "accept")])
    other.api.accept_permission("aa00bb11")
    assert (other.line, other.params) == ("POST /terminals/aa00bb11/input", [("message", "y")])


@pytest.mark.parametrize("word", list(TerminalStatus))
def test_get_status(word: TerminalStatus) -> None:
    wire = Wire(lambda _: httpx.Response(200, json={"status": word.value}))
    assert wire.api.get_terminal("aa00bb11").status is word
    assert wire.line == "GET /terminals/aa00bb11"


def test_get_last_output() -> None:
    wire = Wire()
    assert wire.api.get_last_output("aa00bb11") == "text"
    assert (wire.line, wire.params) == ("GET /terminals/aa00bb11/output", [("mode", "last")])


@pytest.mark.parametrize("answer", [{}, {"output": None}, {"output": ""}])
def test_no_last_output(answer: dict[str, object]) -> None:
    assert not Wire(lambda _: httpx.Response(200, json=answer)).api.get_last_output("aa00bb11")


def test_exiting_a_terminal_that_is_gone_is_no_error() -> None:
    wire = Wire(lambda _: httpx.Response(404, json={"detail": "gone"}))
    wire.api.exit_terminal("aa00bb11")
    assert wire.line == "POST /terminals/aa00bb11/exit"


def test_a_token_travels_in_a_header() -> None:
    wire = Wire(token="secret")
    wire.client.health()
    assert wire.requests[0].headers["Authorization"] == "Bearer secret"
    without = Wire()
    without.client.health()
    assert "Authorization" not in without.requests[0].headers


@pytest.mark.parametrize("answer", [{}, {"id": ""}, {"id": None}, {"id": 5}])
def test_a_creation_without_an_id_is_an_error(answer: dict[str, object]) -> None:
    wire = Wire(lambda _: httpx.Response(201, json=answer))
    with pytest.raises(Refused, match="without a terminal id"):
        wire.api.create_session("p", "codex")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, Refused) for code in (400, 401, 403, 409, 413, 422)),
        (404, TerminalGone),
        *((code, OutcomeUnknown) for code in (500, 502, 503)),
    ],
)
def test_each_answer_has_its_error(code: int, kind: type[ApiError]) -> None:
    wire = Wire(lambda _: httpx.Response(code, json={"detail": "the reason"}))
    with pytest.raises(ApiError, match="the reason") as caught:
        wire.api.send_input("aa00bb11", "x")
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "http://127.0.0.1:9889" in text
    assert "POST /terminals/aa00bb11/input" in text
    assert len(wire.requests) == 1, "the client repeats nothing by itself"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (httpx.Response(422, json={"detail": "Invalid provider"}), "Invalid provider"),
        (httpx.Response(422, json={"detail": [{"loc": ["query"], "msg": "field required"}]}), "field required"),
        (httpx.Response(422, text="plain words\nin two lines"), "plain words in two lines"),
        (httpx.Response(422, content=b'{"detail": "half'), '{"detail": "half'),
        (httpx.Response(422, json={"error": "another shape"}), "another shape"),
        (httpx.Response(422, json=["a", "list"]), "list"),
        (httpx.Response(422, content=b""), "422"),
        (httpx.Response(422, content=b"\xff\xfe\x00bin"), "bin"),
    ],
)
def test_the_servers_own_words_are_shown_in_one_line(answer: httpx.Response, shown: str) -> None:
    with pytest.raises(Refused) as caught:
        Wire(lambda _: answer).api.get_terminal("aa00bb11")
    assert shown in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_long_complaint_is_cut() -> None:
    with pytest.raises(Refused) as caught:
        Wire(lambda _: httpx.Response(400, json={"detail": "x" * 10_000})).client.health()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("content", [b"[]", b"null", b"5"])
def test_an_answer_that_is_no_object_is_an_error(content: bytes) -> None:
    with pytest.raises(ApiError, match="no JSON object"):
        Wire(lambda _: httpx.Response(200, content=content)).api.get_terminal("aa00bb11")


def raising(error: Exception) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(error, httpx.RequestError):
            error.request = request
        raise error

    return answer


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ConnectTimeout(""), httpx.PoolTimeout("")])
def test_what_never_left_may_be_sent_again(error: Exception) -> None:
    with pytest.raises(PassingFault, match="cannot connect") as caught:
        Wire(raising(error)).api.send_input("aa00bb11", "x")
    assert not isinstance(caught.value, OutcomeUnknown)


@pytest.mark.parametrize(
    "answer",
    [
        raising(httpx.ReadTimeout("")),
        raising(httpx.WriteTimeout("")),
        raising(httpx.ReadError("reset")),
        raising(httpx.WriteError("broken pipe")),
        raising(httpx.RemoteProtocolError("disconnected")),
        lambda _: httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")),
    ],
)
def test_what_broke_on_the_way_may_have_arrived(answer: Answer) -> None:
    with pytest.raises(OutcomeUnknown, match="no answer"):
        Wire(answer).api.send_input("aa00bb11", "x")


@pytest.mark.parametrize(
    "error", [httpx.UnsupportedProtocol("ftp"), httpx.LocalProtocolError("header"), httpx.InvalidURL("x")]
)
def test_what_can_never_be_sent_is_no_passing_fault(error: Exception) -> None:
    with pytest.raises(Refused):
        Wire(raising(error)).client.health()


def test_an_address_that_is_none_is_one_clear_line() -> None:
    with pytest.raises(Refused, match=r"http://\[::"):
        ApiClient("http://[::", "/wd")


def test_reads_are_short_and_creations_patient() -> None:
    """A CLI takes minutes to start; a status request must not hold up a run that long."""
    wire = Wire()
    wire.api.get_terminal("aa00bb11")
    wire.api.create_session("p", "codex")
    wire.api.send_input("aa00bb11", "x")
    read, create, send = (request.extensions["timeout"]["read"] for request in wire.requests)
    assert read <= 10
    assert create >= 600
    assert 30 <= send <= 300
    assert all(request.extensions["timeout"]["connect"] <= 10 for request in wire.requests)


def test_no_proxy_stands_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    api = ApiClient("http://127.0.0.1:9", "/wd")
    with pytest.raises(PassingFault, match=r"127\.0\.0\.1:9"):
        api.health()
    assert not api._http._mounts
    api.close()


def test_a_lone_surrogate_does_not_break_the_wire() -> None:
    """PROMPT from an environment that is not UTF-8."""
    wire = Wire()
    assert wire.api.fits("caf\udce9")
    wire.api.send_input("aa00bb11", "caf\udce9")
    assert wire.params == [("message", "caf?")]


def test_half_a_character_in_an_id_does_not_break_the_wire() -> None:
    wire = Wire()
    wire.api.get_terminal("a\ud800b")
    wire.api.create_terminal("s\ud800", "tester", "codex")
    assert [request.url.path for request in wire.requests] == ["/terminals/a?b", "/sessions/s?/terminals"]


def test_an_answer_that_is_nested_too_deeply_is_not_json() -> None:
    deep = b"[" * 9000
    with pytest.raises(OutcomeUnknown, match="not JSON"):
        Wire(lambda _: httpx.Response(200, content=deep)).api.get_terminal("t")
    with pytest.raises(Refused, match="answered 400"):
        Wire(lambda _: httpx.Response(400, content=deep)).api.get_terminal("t")


@pytest.mark.parametrize(
    ("url", "wanted"), [("http://127.0.0.1:9889", False), ("https://a.invalid", True), ("HTTPS://a.invalid", True)]
)
def test_certificates_are_read_where_they_are_checked(url: str, wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **given: read.append(given))
    ApiClient(url, "/").close()
    assert bool(read) == wanted
