"""A tool call of an agent: what the protocol's updates tell of it, and what was done by it."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from quintet.providers.json_lines import as_object, text_in

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_KINDS: Final = {
    "execute": "command",
    **dict.fromkeys(("read", "search"), "read"),
    **dict.fromkeys(("edit", "delete", "move"), "change"),
}
"""kinds of tools by the protocol, and what actions of a turn are called; all others are `tool`"""
_PATHS: Final = ("path", "file_path", "filePath", "absolute_path", "notebook_path", "pattern", "query")
_CODES: Final = ("exit_code", "exitCode", "exit", "returncode")
_EXIT = re.compile(r"^(?:Exit Code|Process exited with code|exit code)[: ]+(-?\d{1,9})\b", re.MULTILINE | re.IGNORECASE)
_LONGEST: Final = 20_000
"""characters of a command, a path or an output that are kept"""


class Done(NamedTuple):
    """One thing that was done, as the record has it."""

    kind: str
    text: str
    exit_code: int | None


@dataclass
class ToolCall:
    """One call, as far as it was told."""

    id: str
    title: str = ""
    kind: str = ""
    status: str = "pending"
    given: Mapping[str, Any] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    output: str = ""
    exit_code: int | None = None
    refused: bool = False
    """whether its permission was not given: then nothing was done"""
    only_asked: bool = False
    """whether nothing but the question for its permission has told of it: some agents use another id for that"""

    def take(self, update: Mapping[str, Any]) -> None:
        """What an update tells; what it does not name stays as it was."""
        self.title = text_in(update, "title").strip()[:_LONGEST] or self.title
        self.kind = text_in(update, "kind") or self.kind
        self.status = text_in(update, "status") or self.status
        self.given = as_object(update.get("rawInput")) or self.given
        self._take_content(update.get("content"))
        for place in _objects(update.get("locations")):
            self._add_path(text_in(place, "path"))
        raw = update.get("rawOutput")
        if raw is not None:
            self.exit_code = _exit_code(raw) if self.exit_code is None else self.exit_code
            self.output = self.output or _output(raw)

    def _take_content(self, content: Any) -> None:
        texts: list[str] = []
        for part in _objects(content):
            if text_in(part, "type") == "diff":
                self._add_path(text_in(part, "path"))
            else:
                texts.append(text_in(as_object(part.get("content")), "text"))
        self.output = "\n".join(texts)[-_LONGEST:] or self.output

    def _add_path(self, path: str) -> None:
        if path and path not in self.paths and len(self.paths) < 100:  # noqa: PLR2004 - far more than anybody edits
            self.paths.append(path[:_LONGEST])

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def failed(self) -> bool:
        return self.status == "failed" or self.exit_code not in (0, None)

    @property
    def action_kind(self) -> str:
        return _KINDS.get(self.kind, "tool")

    @property
    def subject(self) -> str:
        """The command, the file or the title: what the call is about."""
        if self.action_kind == "command":
            return _command(self.given.get("command", self.given.get("cmd"))) or self.title
        if self.action_kind in ("read", "change"):
            named = next((path for name in _PATHS if (path := text_in(self.given, name))), "")
            return named[:_LONGEST] or (self.paths[0] if self.paths else _first_line(self.title))
        return _first_line(self.title) or self.kind

    def done(self) -> Iterator[Done]:
        """What it did; nothing where it was refused."""
        if self.refused or self.only_asked:
            return
        code = self.exit_code
        if self.action_kind == "command" and code is None and (told := _EXIT.search(self.output)):
            code = int(told[1])
        if self.action_kind == "change" and self.status == "failed":
            return  # no file was changed
        if self.action_kind == "change" and self.paths:
            yield from (Done("change", path, None) for path in self.paths)
        elif subject := self.subject:
            yield Done(self.action_kind, subject, code if self.action_kind == "command" else None)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (as_object(one) for one in value) if isinstance(value, list) else ()


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _command(raw: Any) -> str:
    if isinstance(raw, list):
        return shlex.join(word for word in raw if isinstance(word, str))[:_LONGEST]
    return raw[:_LONGEST] if isinstance(raw, str) else ""


def _exit_code(raw: Any) -> int | None:
    """The exit code in what a tool has put out, also in its `metadata` or in one of its `contents`."""
    output = as_object(raw)
    for source in (output, as_object(output.get("metadata")), *_objects(output.get("contents"))):
        for name in _CODES:
            code = source.get(name)
            if type(code) is int and abs(code) <= 10**9:
                return code
    return None


def _output(raw: Any) -> str:
    if isinstance(raw, str):
        return raw[-_LONGEST:]
    return next(
        (text[-_LONGEST:] for name in ("output", "error", "message") if (text := text_in(as_object(raw), name))), ""
    )
