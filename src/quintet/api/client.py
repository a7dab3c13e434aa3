"""The client of a terminal server, ours or CAO's: parameters travel in the query string."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple, TypedDict, Unpack
from urllib.parse import quote

import httpx
from pydantic import ValidationError

from quintet.actions import TurnActions
from quintet.api.models import Failure
from quintet.api.shown import last_lines
from quintet.api.status import TerminalStatus
from quintet.errors import ApiError, MaybeDone, NotJson, PassingFault, Refused, TerminalGone, Torn

LONGEST_QUERY: Final = 60_000
"""percent-encoded characters of a message that a query string carries; CAO refuses about 65,500"""
OWN_SERVICE: Final = "quintet"
"""what our own server calls itself in /health"""

LONGEST_ANSWER: Final = 16_000_000
"""bytes of an answer that are read; our own server sends less"""
READ_SECONDS: Final = 10.0
INPUT_SECONDS: Final = 120.0
_CREATE = httpx.Timeout(900.0, connect=10.0)
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_NEVER = (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)
"""what no repetition mends"""
_NOT_FOUND, _SERVER_ERROR, _ERROR, _NO_TOKEN = 404, 500, 400, 401
_NO_TERMINAL: Final = "00000000"
_UNKNOWN: Final = TerminalStatus.UNKNOWN
_LATER = frozenset({408, 425, 429})
"""answers of a server that has not even begun"""


class Standing(NamedTuple):
    """How a terminal stands."""

    status: TerminalStatus
    doubt: str = ""
    """how the server's witnesses disagree for long"""
    typed_after: int | None = None
    """the number of its last turn, where somebody has typed a prompt in the terminal since"""


class LaunchOptions(TypedDict, total=False):
    """What may be said of a terminal's start; what is empty is left to the server."""

    model: str
    args: Sequence[str]
    permissions: str
    """`ask` or `unattended`; only our own server knows it"""
    continues: str
    """a lost terminal of our own server"""


class Bearer(httpx.Auth):
    """Sends the server's token, asked for with every request: a server that was started again has another one."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """A refusal for lack of the token has done nothing, so that request alone may come again."""
        sent = self._token()
        if sent:
            request.headers["Authorization"] = f"Bearer {sent}"
        response = yield request
        if response.status_code == _NO_TOKEN and (newer := self._token()) not in ("", sent):
            request.headers["Authorization"] = f"Bearer {newer}"
            yield request


class ApiClient:
    """One server, one working directory. Reads may be repeated by the caller; input never is."""

    def __init__(
        self,
        url: str,
        wd: str,
        token: str | Callable[[], str] = "",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        auth = Bearer(token if callable(token) else lambda: token)
        # trust_env: a proxy of the user's must not stand between us and a server on loopback
        try:
            self._http = httpx.Client(
                base_url=url, auth=auth, timeout=READ_SECONDS, transport=transport, trust_env=False
            )
        except httpx.InvalidURL as error:
            raise Refused(f"terminal server {url}: {error}") from None
        self._wd = wd
        self.url = url
        self.own = False
        """whether the server is Quintet's, known after health()"""

    def health(self) -> None:
        """Ask whether the server is there, and whose it is. A server without this route is somebody else's."""
        try:
            self.own = self._request("GET", "/health").get("service") == OWN_SERVICE
        except Torn:
            raise
        except (TerminalGone, NotJson):
            self.own = False

    def check_token(self) -> None:
        """Raise where our own server does not know us: it answers /health to everybody."""
        try:
            if self.own:
                self.get_terminal(_NO_TERMINAL)
        except TerminalGone:
            return

    def create_session(
        self, profile: str, provider: str, *, session_name: str = "", **options: Unpack[LaunchOptions]
    ) -> dict[str, Any]:
        """Create a session with its first terminal; the answer has `id` and `session_name`."""
        more = {"session_name": session_name} if session_name else {}
        return self._create("/sessions", _launch(profile, provider, options) | more)

    def create_terminal(
        self, session_name: str, profile: str, provider: str, **options: Unpack[LaunchOptions]
    ) -> dict[str, Any]:
        """Add a terminal to a session; the answer may come before its agent is ready."""
        path = f"/sessions/{quote(_sendable(session_name), safe='')}/terminals"
        return self._create(path, _launch(profile, provider, options))

    def send_input(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float = INPUT_SECONDS) -> None:
        """Type a message into a terminal. Our own server takes one dispatch id only once."""
        timeout = httpx.Timeout(seconds, connect=min(seconds, 10.0))
        path, message = f"{_terminal(terminal_id)}/input", _sendable(message)
        if self.own:
            body = {"message": message} | ({"dispatch_id": dispatch_id} if dispatch_id else {})
            self._do(path, json=body, timeout=timeout)
        else:
            self._do(path, params={"message": message}, timeout=timeout)

    def fits(self, message: str) -> bool:
        """Whether a message can be sent as it is."""
        return self.own or len(quote(_sendable(message), safe="")) <= LONGEST_QUERY

    def accept_permission(self, terminal_id: str) -> None:
        """Say yes to an agent that asks: on our server with the key that its provider names, elsewhere with `y`."""
        if self.own:
            self._do(f"{_terminal(terminal_id)}/key", params={"key": "accept"})
        else:
            self.send_input(terminal_id, "y", seconds=READ_SECONDS)

    def get_terminal(self, terminal_id: str, seconds: float = READ_SECONDS) -> dict[str, Any]:
        """What the server tells of a terminal."""
        return self._request("GET", _terminal(terminal_id), timeout=min(seconds, READ_SECONDS))

    def get_status(self, terminal_id: str, seconds: float = READ_SECONDS) -> TerminalStatus:
        """How a terminal stands; a word that we do not know is `unknown`."""
        return self.get_standing(terminal_id, seconds).status

    def get_standing(self, terminal_id: str, seconds: float = READ_SECONDS) -> Standing:
        """How a terminal stands, and whether its server has doubts."""
        found = self.get_terminal(terminal_id, seconds)
        word, doubt = found.get("status"), found.get("doubt")
        status = TerminalStatus(word) if isinstance(word, str) and word in set(TerminalStatus) else _UNKNOWN
        typed = found.get("typed_after") if self.own else None
        return Standing(status, doubt if isinstance(doubt, str) else "", typed if type(typed) is int else None)

    def get_reason(self, terminal_id: str) -> str:
        """Why a terminal has failed, in brackets, where the server tells."""
        try:
            reason = self.get_terminal(terminal_id).get("reason")
        except ApiError:
            return ""
        return f" ({reason})" if isinstance(reason, str) and reason else ""

    def get_last_words(self, terminal_id: str) -> str:
        """The last lines that a failed terminal has shown, as the end of a message; empty where nobody tells."""
        try:
            if self.own:
                shown = self.get_terminal(terminal_id).get("last_screen")
            else:
                path = f"{_terminal(terminal_id)}/output"
                shown = self._request("GET", path, params={"mode": "full"}).get("output")
        except ApiError:
            return ""
        said = last_lines(shown) if isinstance(shown, str) else ""
        return f"; it said: {said}" if said else ""

    def get_failure(self, terminal_id: str) -> Failure | None:
        """Why the agent's last turn ended without an answer; None where it did not, or where nobody tells."""
        try:
            told = self.get_terminal(terminal_id).get("failure") if self.own else None
            return Failure.model_validate(told) if told else None
        except (ApiError, ValidationError):
            return None

    def get_actions(self, terminal_id: str) -> TurnActions | None:
        """What the agent did in its last turn; None where the turn has not ended, or where nobody knows."""
        try:
            told = self.get_terminal(terminal_id).get("actions") if self.own else None
            return TurnActions.model_validate(told) if told is not None else None
        except (ApiError, ValidationError):
            return None

    def get_last_output(self, terminal_id: str) -> str:
        """The agent's last answer, as the server reads it from the screen or from the agent's records."""
        answer = self._request("GET", f"{_terminal(terminal_id)}/output", params={"mode": "last"})
        return str(answer.get("output") or "")

    def exit_terminal(self, terminal_id: str) -> None:
        """End the agent in a terminal; one that is gone already is no error."""
        try:
            self._do(f"{_terminal(terminal_id)}/exit")
        except TerminalGone:
            return

    def forget_terminal(self, terminal_id: str) -> None:
        """End a terminal and remove what is left of it; only our own server has to."""
        try:
            if self.own:
                self._request("DELETE", _terminal(terminal_id))
        except TerminalGone:
            return

    def delete_session(self, session_name: str) -> None:
        """End a session and all its terminals; one that is gone already is no error."""
        try:
            self._request("DELETE", f"/sessions/{quote(session_name, safe='')}")
        except (TerminalGone, NotJson):
            return

    def close(self) -> None:
        self._http.close()

    def _create(self, path: str, params: dict[str, Any]) -> dict[str, Any]:
        params |= {"working_directory": self._wd}
        if self.own or path != "/sessions":  # CAO starts only the later terminals side by side
            params |= {"defer_init": "true"}
        answer = self._request("POST", path, params=params, timeout=_CREATE)
        if not isinstance(answer.get("id"), str) or not answer["id"]:
            raise Refused(f"terminal server {self.url}: POST {path} answered without a terminal id")
        return answer

    def _do(self, path: str, **options: Any) -> None:
        """Give an order; what a server says beside its status code does not matter."""
        try:
            self._request("POST", path, **options)
        except NotJson:
            return

    def _request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        what = f"terminal server {self.url}: {method} {path}"
        try:
            with self._http.stream(method, path, **options) as coming:
                response = _read(coming)
        except _NOT_SENT as error:
            raise PassingFault(f"{what}: cannot connect ({_reason(error)})") from None
        except _NEVER as error:
            raise Refused(f"{what}: cannot be sent ({_reason(error)})") from None
        except httpx.RequestError as error:
            raise MaybeDone(f"{what}: no answer ({_reason(error)})") from None
        if response is None:
            raise Refused(f"{what}: the answer has more than {LONGEST_ANSWER // 1_000_000} MB")
        if response.status_code == _NOT_FOUND:
            raise TerminalGone(f"{what}: {_detail(response)}")
        if response.status_code >= _SERVER_ERROR:
            raise MaybeDone(f"{what}: answered {response.status_code} ({_detail(response)})")
        if response.status_code in _LATER:
            raise PassingFault(f"{what}: answered {response.status_code} ({_detail(response)})")
        if response.status_code >= _ERROR:
            refused = Refused(f"{what}: answered {response.status_code} ({_detail(response)})")
            refused.detail = _detail(response)
            raise refused
        return self._object(response, what)

    @staticmethod
    def _object(response: httpx.Response, what: str) -> dict[str, Any]:
        try:
            answer = response.json()
        except (ValueError, RecursionError):
            if response.content.lstrip().startswith(b"{"):
                raise Torn(f"{what}: the answer is not JSON, only a part of it has come") from None
            raise NotJson(f"{what}: the answer is not JSON; is this a terminal server?") from None
        if not isinstance(answer, dict):
            raise NotJson(f"{what}: the answer is no JSON object; is this a terminal server?")
        return answer


def _read(coming: httpx.Response) -> httpx.Response | None:
    """An answer with all of its body; None where that is too long."""
    body = bytearray()
    for piece in coming.iter_bytes():
        body += piece
        if len(body) > LONGEST_ANSWER:
            return None
    kind = {name: coming.headers[name] for name in ("content-type",) if name in coming.headers}
    return httpx.Response(coming.status_code, headers=kind, content=bytes(body))


def _sendable(text: str) -> str:
    """A text without the lone surrogates that an environment which is not UTF-8 leaves in it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _terminal(terminal_id: str) -> str:
    """The path of a terminal; its id may come from a file that anybody can edit."""
    return f"/terminals/{quote(_sendable(terminal_id), safe='')}"


def _launch(profile: str, provider: str, options: LaunchOptions) -> dict[str, Any]:
    given = {name: value for name, value in options.items() if value}
    return {"provider": provider, "agent_profile": profile} | given


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _detail(response: httpx.Response) -> str:
    """The server's own words, in whatever form: a text, a list of complaints, no JSON at all."""
    try:
        answer = response.json()
    except (ValueError, RecursionError):
        answer = response.text
    detail = answer.get("detail", answer) if isinstance(answer, dict) else answer
    return " ".join(str(detail).split())[:300]
