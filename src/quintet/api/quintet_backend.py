"""Quintet's own terminal server: CAO's API, with what the loop needs beyond it."""

import secrets
from typing import Any, Final
from urllib.parse import quote

from quintet.api.backend import INPUT_SECONDS, Backend, LaunchOptions, TerminalView
from quintet.api.cao_backend import IN_BODY, CaoBackend, sendable, terminal_path
from quintet.api.client import ApiClient
from quintet.api.models import Health, StraysEnded
from quintet.api.shown import last_lines
from quintet.errors import Refused, TerminalGone

_NO_TERMINAL: Final = "00000000"


class QuintetBackend(CaoBackend):
    """Inputs travel in the body, with an id by which a repetition is known; a terminal tells all of itself."""

    knows_dispatch_ids = replaces_terminals = owns_sessions = counts_tokens = sees_typing = takes_permissions = True
    takes_sandboxes = takes_own_agents = True
    _starts_first_terminal_later = True

    def session_name(self, run_id: str) -> str:
        """Another one each time, since the old may linger."""
        return f"{run_id}-{secrets.token_hex(2)}"

    def _create(
        self, path: str, profile: str, provider: str, options: LaunchOptions, more: dict[str, str]
    ) -> TerminalView:
        try:
            return super()._create(path, profile, provider, options, more)
        except Refused as error:
            raise Refused(error.detail or str(error)) from error

    def _takes_option(self, name: str) -> bool:
        return name not in IN_BODY

    def _content(self, options: LaunchOptions) -> dict[str, Any]:
        parts = {"sandbox": options.get("sandbox"), "agent": options.get("agent")}
        body = {name: part.model_dump() for name, part in parts.items() if part}
        return {"json": body} if body else {}

    def _view(self, answer: dict[str, Any]) -> TerminalView:
        return TerminalView.model_validate(answer)

    def get_last_lines(self, terminal: TerminalView) -> str:
        return last_lines(terminal.last_screen)

    def fits(self, message: str) -> bool:  # noqa: ARG002
        return True

    def send_input(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float = INPUT_SECONDS) -> None:
        body = {"message": sendable(message)} | ({"dispatch_id": dispatch_id} if dispatch_id else {})
        self._input(terminal_id, seconds, json=body)

    def accept_permission(self, terminal_id: str) -> None:
        """With the key that the terminal's provider names."""
        self._client.order(f"{terminal_path(terminal_id)}/key", params={"key": "accept"})

    def forget_terminal(self, terminal_id: str) -> None:
        try:
            self._client.request("DELETE", terminal_path(terminal_id))
        except TerminalGone:
            return

    def end_strays(self, session_name: str, but: str = "") -> dict[str, list[str]]:
        path = f"{_session_path(session_name)}/strays"
        return StraysEnded.model_validate(self._client.request("POST", path, params={"but": but})).ended

    def stop_processes(self, session_name: str) -> None:
        self._client.request("POST", f"{_session_path(session_name)}/stop")

    def continue_processes(self, session_name: str) -> None:
        self._client.request("POST", f"{_session_path(session_name)}/continue")

    def check_token(self) -> None:
        """Ask for something that needs the token: /health is answered to everybody."""
        try:
            self.get_terminal(_NO_TERMINAL)
        except TerminalGone:
            return


def _session_path(name: str) -> str:
    return f"/sessions/{quote(sendable(name), safe='')}"


def backend_of(client: ApiClient) -> Backend:
    """The backend for the server that answers, by what it calls itself."""
    return QuintetBackend(client) if client.health() == Health().service else CaoBackend(client)
