"""The status of a run's terminals, asked of the server that the run has named in `.tmp/server.json`."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from quintet import files
from quintet.ansi import without_escapes
from quintet.layout import DISCOVERY, LONGEST_WORD
from quintet.watch.runs.formatting import one_line
from quintet.watch.runs.model import Run

_SECONDS: Final = 2.0
_LONGEST_STEP: Final = 60
_STEP: Final = re.compile(r"^\s*[•●⏺]\s+(\S.*)$")
"""the beginning of a line in which Codex or Claude Code says what it does"""


@dataclass(frozen=True)
class TurnActivity:
    """What a terminal shows of its present turn."""

    tokens: int = 0
    screen: str = ""

    @property
    def last_step(self) -> str:
        """The last thing that the agent did, by its screen; empty where that shows none."""
        lines = (_STEP.match(without_escapes(line)) for line in reversed(self.screen.splitlines()))
        found = next((one_line(match[1]) for match in lines if match), "")
        return found if len(found) <= _LONGEST_STEP else f"{found[: _LONGEST_STEP - 1].rstrip()}…"


@dataclass(frozen=True)
class ServerAddress:
    """The address of a run's server, and the token that it asks for."""

    url: str
    token: str = ""


def find_server(wd: Path) -> ServerAddress | None:
    """The server of the run in a project, from the file that it writes there."""
    try:
        found: Any = json.loads(files.read(wd / DISCOVERY, LONGEST_WORD, wd))
        url, token = found["url"], found.get("token", "")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return ServerAddress(url, token) if _is_loopback(url) and isinstance(token, str) else None


def _is_loopback(url: Any) -> bool:
    """Whether an address is on this machine. Agents can change the file: it must not send us elsewhere."""
    try:
        parts = httpx.URL(url) if isinstance(url, str) else None
    except httpx.InvalidURL:
        return False
    return parts is not None and parts.scheme == "http" and parts.host in ("127.0.0.1", "localhost", "::1")


def terminal_statuses(wd: Path, run: Run) -> dict[str, str]:
    """The status of the terminal of each role, as far as the server answers."""
    paths = {role: _path(terminal) for role, (terminal, _) in run.terminals.items()}
    answers = _answers(wd, list(paths.values()))
    found = {role: answers.get(path, {}).get("status") for role, path in paths.items()}
    return {role: status for role, status in found.items() if isinstance(status, str)}


def turn_activity(wd: Path, run: Run, role: str) -> TurnActivity:
    """What the terminal of a role shows of its present turn."""
    terminal = run.terminals.get(role, ("", ""))[0]
    about, screen = _path(terminal), f"{_path(terminal)}/screen"
    answers = _answers(wd, [about, screen] if terminal else [])
    usage, text = answers.get(about, {}).get("usage"), answers.get(screen, {}).get("text")
    counts = [usage.get(name) for name in ("input_tokens", "output_tokens")] if isinstance(usage, dict) else []
    tokens = sum(number for number in counts if type(number) is int and number > 0)
    return TurnActivity(tokens, text if isinstance(text, str) else "")


def _path(terminal: str) -> str:
    return f"/terminals/{quote(terminal, safe='')}"


def _answers(wd: Path, paths: list[str]) -> dict[str, dict[str, Any]]:
    """The answers of the run's server by path, without those that fail."""
    server = find_server(wd)
    if server is None:
        return {}
    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    found: dict[str, dict[str, Any]] = {}
    try:
        # nothing to verify on loopback, and reading the certificates would take most of the time
        with httpx.Client(
            base_url=server.url,
            headers=headers,
            timeout=_SECONDS,
            trust_env=False,
            verify=False,  # noqa: S501
        ) as http:
            for path in paths:
                answer = http.get(path)
                content = answer.json() if answer.is_success else None
                if isinstance(content, dict):
                    found[path] = content
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return found
    return found
