"""The terminal server of CLI Agent Orchestrator (CAO), and any other with its API: parameters in the query string."""

from typing import Any, Final, Unpack
from urllib.parse import quote

import httpx

from quintet.api.backend import INPUT_SECONDS, LaunchOptions, TerminalView
from quintet.api.client import READ_SECONDS, ApiClient
from quintet.api.shown import last_lines
from quintet.errors import ApiError, NotJson, Refused, TerminalGone

LONGEST_QUERY: Final = 60_000
"""percent-encoded characters of a message that a query string carries; CAO refuses about 65,500"""
IN_BODY: Final = ("sandbox", "agent")
"""options that travel in the body, where the server takes them at all"""
_CREATE = httpx.Timeout(900.0, connect=10.0)


class CaoBackend:
    """CAO's routes. It tells the status of a terminal and little more."""

    knows_dispatch_ids = replaces_terminals = owns_sessions = counts_tokens = sees_typing = takes_permissions = False
    takes_sandboxes = takes_own_agents = False
    _starts_first_terminal_later = False
    """whether the first terminal of a session can be started side by side with the others"""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def session_name(self, run_id: str) -> str:  # noqa: ARG002 - it chooses the name itself
        return ""

    def create_session(
        self, profile: str, provider: str, *, session_name: str = "", **options: Unpack[LaunchOptions]
    ) -> TerminalView:
        more = {"session_name": session_name} if session_name else {}
        if self._starts_first_terminal_later:
            more |= {"defer_init": "true"}
        return self._create("/sessions", profile, provider, options, more)

    def create_terminal(
        self, session_name: str, profile: str, provider: str, **options: Unpack[LaunchOptions]
    ) -> TerminalView:
        path = f"/sessions/{quote(sendable(session_name), safe='')}/terminals"
        return self._create(path, profile, provider, options, {"defer_init": "true"})

    def _create(
        self, path: str, profile: str, provider: str, options: LaunchOptions, more: dict[str, str]
    ) -> TerminalView:
        params: dict[str, Any] = {"provider": provider, "agent_profile": profile}
        params |= {name: value for name, value in options.items() if value and self._takes_option(name)}
        params |= {"working_directory": self._client.wd, **more}
        answer = self._view(
            self._client.request("POST", path, params=params, timeout=_CREATE, **self._content(options))
        )
        if not answer.id:
            raise Refused(f"terminal server {self._client.url}: POST {path} answered without a terminal id")
        return answer

    def _takes_option(self, name: str) -> bool:
        return name not in ("permissions", *IN_BODY)

    def _content(self, options: LaunchOptions) -> dict[str, Any]:  # noqa: ARG002
        """What of the options travels in the body."""
        return {}

    def _view(self, answer: dict[str, Any]) -> TerminalView:
        return TerminalView.model_validate({name: answer.get(name) for name in ("id", "session_name", "status")})

    def get_terminal(self, terminal_id: str, seconds: float = READ_SECONDS) -> TerminalView:
        return self._view(self._client.request("GET", terminal_path(terminal_id), timeout=min(seconds, READ_SECONDS)))

    def get_last_lines(self, terminal: TerminalView) -> str:
        try:
            return last_lines(self._output(terminal.id, "full"))
        except ApiError:
            return ""

    def get_last_output(self, terminal_id: str) -> str:
        return self._output(terminal_id, "last")

    def _output(self, terminal_id: str, mode: str) -> str:
        answer = self._client.request("GET", f"{terminal_path(terminal_id)}/output", params={"mode": mode})
        return str(answer.get("output") or "")

    def fits(self, message: str) -> bool:
        return len(quote(sendable(message), safe="")) <= LONGEST_QUERY

    def send_input(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float = INPUT_SECONDS) -> None:  # noqa: ARG002
        self._input(terminal_id, seconds, params={"message": sendable(message)})

    def _input(self, terminal_id: str, seconds: float, **content: Any) -> None:
        timeout = httpx.Timeout(seconds, connect=min(seconds, READ_SECONDS))
        self._client.order(f"{terminal_path(terminal_id)}/input", timeout=timeout, **content)

    def accept_permission(self, terminal_id: str) -> None:
        self.send_input(terminal_id, "y", seconds=READ_SECONDS)

    def exit_terminal(self, terminal_id: str) -> None:
        try:
            self._client.order(f"{terminal_path(terminal_id)}/exit")
        except TerminalGone:
            return

    def forget_terminal(self, terminal_id: str) -> None:
        """CAO keeps nothing of a terminal that has ended."""

    def end_strays(self, session_name: str, but: str = "") -> dict[str, list[str]]:  # noqa: ARG002
        """CAO knows nothing of what its terminals have started."""
        return {}

    def stop_processes(self, session_name: str) -> None:
        """CAO cannot."""

    def continue_processes(self, session_name: str) -> None:
        """CAO stops none."""

    def delete_session(self, session_name: str) -> None:
        try:
            self._client.request("DELETE", f"/sessions/{quote(sendable(session_name), safe='')}")
        except (TerminalGone, NotJson):
            return

    def check_token(self) -> None:
        """CAO asks for none."""

    def close(self) -> None:
        self._client.close()


def sendable(text: str) -> str:
    """A text without the lone surrogates that an environment which is not UTF-8 leaves in it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def terminal_path(terminal_id: str) -> str:
    """The path of a terminal; its id may come from a file that anybody can edit."""
    return f"/terminals/{quote(sendable(terminal_id), safe='')}"
