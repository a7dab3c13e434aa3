"""`quintet detect`: the status that a captured screen shows."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from quintet.ansi import without_escapes
from quintet.errors import QuintetError
from quintet.providers.registry import REGISTERED, find_provider
from quintet.providers.screen import Screen


def detect(provider: str, file: Path | None, jsonl: bool) -> None:
    """Print the status of one screen, or of each recording."""
    name = next((name for name, agent in REGISTERED.items() if provider in (name, agent.program)), "")
    found = find_provider(name)
    if found is None:
        raise QuintetError(f"unknown provider {provider!r}: choose one of {', '.join(sorted(REGISTERED))}")
    text, name = _read(file)
    frames = _recordings(text, name) if jsonl else iter([Screen(without_escapes(text))])
    for frame in frames:
        click.echo(found.read_screen(frame).value)


def _read(file: Path | None) -> tuple[str, str]:
    """The text, and where it is from. Screens are what terminals hold, and that is not always UTF-8."""
    if file is None or str(file) == "-":
        return sys.stdin.buffer.read().decode("utf-8", errors="replace"), "standard input"
    try:
        return file.read_bytes().decode("utf-8", errors="replace"), str(file)
    except OSError as error:
        raise QuintetError(f"cannot read {file}: {error.strerror or error}") from error


def _recordings(text: str, name: str) -> Iterator[Screen]:
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if line.strip():
            yield _frame(line, f"{name}, line {number}")


def _frame(line: str, place: str) -> Screen:
    try:
        recording = json.loads(line)
    except (ValueError, RecursionError):
        raise QuintetError(f"{place}: not a JSON object") from None
    if not isinstance(recording, dict):
        raise QuintetError(f"{place}: not a JSON object")
    if not isinstance(recording.get("screen"), str):
        raise QuintetError(f"{place}: `screen` is missing or no text")
    return Screen(
        text=without_escapes(recording["screen"]),
        title=_text(recording, "pane_title", place),
        command=_text(recording, "pane_current_command", place),
        alternate=bool(recording.get("alternate_on")),
    )


def _text(recording: dict[str, Any], key: str, place: str) -> str:
    value = recording.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise QuintetError(f"{place}: `{key}` is no text")
    return value
