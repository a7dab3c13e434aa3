"""HTTP requests to a terminal server, and what each kind of failure means."""

from collections.abc import Callable, Generator
from typing import Any, Final

import httpx

from quintet.errors import NotJson, OutcomeUnknown, PassingFault, Refused, TerminalGone, Torn

LONGEST_ANSWER: Final = 16_000_000
"""bytes of an answer that are read; our own server sends less"""
READ_SECONDS: Final = 10.0
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_NEVER = (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)
"""what no repetition mends"""
_NOT_FOUND, _SERVER_ERROR, _ERROR, _NO_TOKEN = 404, 500, 400, 401
_LATER = frozenset({408, 425, 429})
"""answers of a server that has not even begun"""


def needs_certificates(url: str) -> bool:
    """Whether an address is reached over TLS. Reading the certificates takes longer than a request to loopback."""
    return not url.lower().startswith("http:")


class Bearer(httpx.Auth):
    """Sends the server's token, read anew for every request: a server that was started again has another one."""

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
    """Sends requests to one server, for one working directory. It repeats nothing by itself."""

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
                base_url=url,
                auth=auth,
                timeout=READ_SECONDS,
                transport=transport,
                trust_env=False,
                verify=needs_certificates(url),
            )
        except httpx.InvalidURL as error:
            raise Refused(f"terminal server {url}: {error}") from None
        self.url, self.wd = url, wd

    def health(self) -> str:
        """The name of the service that answers; empty for a server that has no /health."""
        try:
            return str(self.request("GET", "/health").get("service") or "")
        except Torn:
            raise
        except (TerminalGone, NotJson):
            return ""

    def order(self, path: str, **options: Any) -> None:
        """POST where nothing but the status code of the answer matters."""
        try:
            self.request("POST", path, **options)
        except NotJson:
            return

    def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Send a request; the JSON object of the answer, or the error that it means."""
        what = f"terminal server {self.url}: {method} {path}"
        try:
            with self._http.stream(method, path, **options) as coming:
                response = _read(coming)
        except _NOT_SENT as error:
            raise PassingFault(f"{what}: cannot connect ({_reason(error)})") from None
        except _NEVER as error:
            raise Refused(f"{what}: cannot be sent ({_reason(error)})") from None
        except httpx.RequestError as error:
            raise OutcomeUnknown(f"{what}: no answer ({_reason(error)})") from None
        if response is None:
            raise Refused(f"{what}: the answer has more than {LONGEST_ANSWER // 1_000_000} MB")
        if response.status_code == _NOT_FOUND:
            raise TerminalGone(f"{what}: {_detail(response)}")
        if response.status_code >= _SERVER_ERROR:
            raise OutcomeUnknown(f"{what}: answered {response.status_code} ({_detail(response)})")
        if response.status_code in _LATER:
            raise PassingFault(f"{what}: answered {response.status_code} ({_detail(response)})")
        if response.status_code >= _ERROR:
            raise Refused(f"{what}: answered {response.status_code} ({_detail(response)})", _detail(response))
        return _object(response, what)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _read(coming: httpx.Response) -> httpx.Response | None:
    """An answer with all of its body; None where that is too long."""
    body = bytearray()
    for piece in coming.iter_bytes():
        body += piece
        if len(body) > LONGEST_ANSWER:
            return None
    kind = {name: coming.headers[name] for name in ("content-type",) if name in coming.headers}
    return httpx.Response(coming.status_code, headers=kind, content=bytes(body))


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
