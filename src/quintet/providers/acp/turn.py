"""A turn: the updates of an agent, folded into what it said, what it did and how it ended. Pure: no clock, no file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from quintet.api.status import FailureKind
from quintet.providers.acp.failures import NO_ANSWER, error_failure, failure, stop_failure, text_failure
from quintet.providers.acp.host_settings import UsageRule
from quintet.providers.acp.json_rpc import Response
from quintet.providers.acp.tools import ToolCall
from quintet.providers.acp.usage import NO_TOKENS, Tokens, read_tokens, turn_tokens
from quintet.providers.json_lines import as_object, text_in

LONGEST_MESSAGE: Final = 4_000_000
"""characters of a message that are kept; of a longer one its end"""


class Said(NamedTuple):
    """A part of a message, as it came."""

    text: str


class MessageEnded(NamedTuple):
    """A whole message."""

    text: str


class Thought(NamedTuple):
    """A part of what the model thinks."""

    text: str


class ToolBegan(NamedTuple):
    """A tool was called."""

    call: ToolCall


class ToolEnded(NamedTuple):
    """A tool has ended, or the turn has ended before it."""

    call: ToolCall


TurnEvent = Said | MessageEnded | Thought | ToolBegan | ToolEnded


class TurnEnd(NamedTuple):
    """How a turn ended."""

    stop: str
    reply: str
    usage: Tokens
    failed: dict[str, Any] | None


@dataclass(frozen=True)
class TurnRules:
    """What is special about an agent's turns."""

    usage: UsageRule = UsageRule.TURN
    error_prefix: str = ""
    note_prefix: str = ""


@dataclass
class _Message:
    """A message of the model's or the program's."""

    id: str
    by_program: bool
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.size += len(text)
        if self.size > 2 * LONGEST_MESSAGE:
            self.parts = [self.text]
            self.size = len(self.parts[0])

    @property
    def text(self) -> str:
        return "".join(self.parts)[-LONGEST_MESSAGE:]


class RunningTurn:
    """One turn while it runs. `take` gives what people and the record are told of."""

    def __init__(self, rules: TurnRules | None = None, before: Tokens = NO_TOKENS) -> None:
        self.rules = rules or TurnRules()
        self.before = before
        """tokens since the program's start, as far as the agent tells them"""
        self.calls: dict[str, ToolCall] = {}
        """the tool calls that run"""
        self._ended: set[str] = set()
        self._messages: list[_Message] = []
        """those after the last tool call"""
        self._last_before = ""
        """the last message before it"""
        self._open = False
        """whether the last message may go on"""
        self._chunks = NO_TOKENS
        self._thread_failed = False
        self._has_ids = False
        self._answered = False

    def take(self, update: Mapping[str, Any]) -> Iterator[TurnEvent]:
        """What one update tells. What is foreign changes nothing."""
        kind = text_in(update, "sessionUpdate")
        if kind == "agent_message_chunk":
            yield from self._take_message(update)
        elif kind == "agent_thought_chunk":
            yield from self._end_message()
            if text := _text(update.get("content")):
                yield Thought(text)
        elif kind in ("tool_call", "tool_call_update"):
            yield from self._take_tool(update)
        elif kind == "session_info_update":
            status = as_object(as_object(as_object(update.get("_meta")).get("codex")).get("threadStatus"))
            if status:
                self._thread_failed = text_in(status, "type") == "systemError"

    def _take_message(self, update: Mapping[str, Any]) -> Iterator[TurnEvent]:
        if self.rules.usage is UsageRule.CHUNKS:
            used = as_object(update.get("_meta")).get("usage")
            self._chunks = self._chunks.plus(read_tokens(used, self.rules.usage))
        text, name = _text(update.get("content")), text_in(update, "messageId")
        if not text:
            return
        self._answered = True
        self._has_ids = self._has_ids or bool(name)
        prefixes = tuple(filter(None, (self.rules.error_prefix, self.rules.note_prefix)))
        by_program = bool(prefixes) and text.startswith(prefixes)
        last = self._messages[-1] if self._messages and self._open else None
        if last is None or by_program or last.by_program or last.id != name:
            yield from self._end_message()
            self._messages.append(_Message(name, by_program))
            self._open = True
        self._messages[-1].add(text)
        yield Said(text)

    def _end_message(self) -> Iterator[TurnEvent]:
        if self._open:
            self._open = False
            yield MessageEnded(self._messages[-1].text)

    def _take_tool(self, update: Mapping[str, Any]) -> Iterator[TurnEvent]:
        name = text_in(update, "toolCallId")
        if not name or name in self._ended:
            return
        call = self.calls.get(name)
        if call is None:
            yield from self._end_message()
            self._last_before = self._said() or self._last_before
            self._messages.clear()
            self._answered = True
            call = self.calls[name] = ToolCall(name)
            call.take(update)
            yield ToolBegan(call)
        else:
            call.only_asked = False
            call.take(update)
        if call.has_ended:
            yield self._end_call(call)

    def _end_call(self, call: ToolCall) -> ToolEnded:
        self._ended.add(call.id)
        del self.calls[call.id]
        return ToolEnded(call)

    @property
    def last_call(self) -> ToolCall | None:
        """The tool call that runs; of several the one that began last."""
        return next(reversed(self.calls.values()), None)

    def ask(self, told: Mapping[str, Any]) -> Iterator[TurnEvent]:
        """The agent asks for permission to make a call, and tells about it."""
        name = text_in(told, "toolCallId")
        is_new = name not in self.calls
        yield from self._take_tool({**told, "status": "pending"})
        if is_new and name in self.calls:
            self.calls[name].only_asked = True

    def refuse(self, call: str) -> None:
        """The permission for a call was not given: it is no action, whatever its updates say."""
        if call in self.calls:
            self.calls[call].refused = True

    def finish(self) -> Iterator[TurnEvent]:
        """What the end of the turn completes."""
        yield from self._end_message()
        for call in list(self.calls.values()):
            yield self._end_call(call)

    def end(self, response: Response, at: float, *, cancelled: bool = False) -> TurnEnd:
        """How the turn ended, by the answer to its prompt."""
        usage, self.before = turn_tokens(self.rules.usage, response.result, self._chunks, self.before)
        stop = "error" if response.error else text_in(response.result, "stopReason")
        if cancelled:
            stop = "cancelled"  # some answer with an error then, or as if the turn had ended by itself
        elif response.error:
            return TurnEnd(stop, self._own_words, usage, error_failure(response.error, at))
        failed = stop_failure(stop, at) or self._hidden_failure(usage, at)
        return TurnEnd(stop, self._own_words if failed else self.reply, usage, failed)

    def died(self, why: str, at: float) -> TurnEnd:
        """The agent has ended in the middle of the turn."""
        return TurnEnd("died", self._own_words, self._chunks, failure(FailureKind.OTHER, why, at))

    def _hidden_failure(self, usage: Tokens, at: float) -> dict[str, Any] | None:
        """Why a turn failed that claims to have ended as it should."""
        error, note = self.rules.error_prefix, self.rules.note_prefix
        told = [one for one in self._messages if not (note and one.by_program and one.text.startswith(note))]
        if told and told[-1].by_program:
            return text_failure(told[-1].text.removeprefix(error), at)
        if self._thread_failed:
            said = [message.text for message in self._messages if not message.id]
            return text_failure(said[-1] if said else NO_ANSWER, at)
        if not self._answered and not any(usage):
            return failure(FailureKind.OTHER, NO_ANSWER, at)
        return None

    @property
    def reply(self) -> str:
        """The last answer: what the model said after its last tool call, or before it where it said nothing since."""
        return self._own_words or "".join(message.text for message in self._messages).strip()

    @property
    def _own_words(self) -> str:
        """The same without what the program itself says, also where there is nothing else."""
        return self._said() or self._last_before

    def _said(self) -> str:
        """What the model said since the last tool call, without the notes of its program."""
        own = [one for one in self._messages if not one.by_program and (one.id or not self._has_ids)]
        texts: list[str] = []
        for number, message in enumerate(own):
            texts += ["\n\n"] if number and message.id != own[number - 1].id else []
            texts.append(message.text)
        return "".join(texts).strip()


def _text(content: Any) -> str:
    """The text of a block of content; a note in place of an image and its like."""
    block = as_object(content)
    kind = text_in(block, "type")
    if kind == "text" or "text" in block:
        return text_in(block, "text")
    return f"[{kind[:40]}]" if kind else ""
