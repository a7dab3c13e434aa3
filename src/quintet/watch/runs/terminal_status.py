"""How the terminals of a run stand, asked of the server that it has left word of."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from quintet import files
from quintet.layout import DISCOVERY, LONGEST_WORD
from quintet.watch.runs.model import Run
from quintet.watch.runs.progress import AtWork

_SECONDS: Final = 2.0


@dataclass(frozen=True)
class Server:
    """Where a run's server is."""

    url: str
    token: str = ""


def find_server(wd: Path) -> Server | None:
    """The server of the run in a directory, by the file that it leaves there while it lives."""
    try:
        word: Any = json.loads(files.read(wd / DISCOVERY, LONGEST_WORD, wd))
        url, token = word["url"], word.get("token", "")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Server(url, token) if _is_loopback(url) and isinstance(token, str) else None


def _is_loopback(url: Any) -> bool:
    """The file lies in the work tree: it must not make us send anything to another machine."""
    try:
        parts = httpx.URL(url) if isinstance(url, str) else None
    except httpx.InvalidURL:
        return False
    return parts is not None and parts.scheme == "http" and parts.host in ("127.0.0.1", "localhost", "::1")


def statuses(wd: Path, run: Run) -> dict[str, str]:
    """By role how its terminal stands; nothing where nobody can tell."""
    paths = {role: _path(terminal) for role, (terminal, _) in run.terminals.items()}
    told = _answers(wd, list(paths.values()))
    found = {role: told.get(path, {}).get("status") for role, path in paths.items()}
    return {role: status for role, status in found.items() if isinstance(status, str)}


def at_work(wd: Path, run: Run, role: str) -> AtWork:
    """What the terminal of a role tells of its present turn."""
    terminal = run.terminals.get(role, ("", ""))[0]
    about, screen = _path(terminal), f"{_path(terminal)}/screen"
    told = _answers(wd, [about, screen] if terminal else [])
    usage, text = told.get(about, {}).get("usage"), told.get(screen, {}).get("text")
    counts = [usage.get(name) for name in ("input_tokens", "output_tokens")] if isinstance(usage, dict) else []
    tokens = sum(number for number in counts if type(number) is int and number > 0)
    return AtWork(tokens, text if isinstance(text, str) else "")


def _path(terminal: str) -> str:
    return f"/terminals/{quote(terminal, safe='')}"


def _answers(wd: Path, paths: list[str]) -> dict[str, dict[str, Any]]:
    """What the run's server answers at these paths; what it does not answer is left out."""
    server = find_server(wd)
    if server is None:
        return {}
    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    found: dict[str, dict[str, Any]] = {}
    try:
        # on loopback there is nothing to verify, and reading the certificates would cost more than all else
        with httpx.Client(
            base_url=server.url,
            headers=headers,
            timeout=_SECONDS,
            trust_env=False,
            verify=False,  # noqa: S501
        ) as http:
            for path in paths:
                answer = http.get(path)
                told = answer.json() if answer.is_success else None
                if isinstance(told, dict):
                    found[path] = told
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return found
    return found
