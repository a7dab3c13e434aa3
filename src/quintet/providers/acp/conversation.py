"""The conversation with one agent: what each of its messages means now, and what to send it. It never waits."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from quintet.providers.acp import json_rpc, permissions
from quintet.providers.acp.host_settings import HostSettings
from quintet.providers.acp.opening import (
    AcpSession,
    Call,
    Opening,
    OpeningFailed,
    PauseUntil,
    Warn,
    begin_again,
    open_session,
)
from quintet.providers.acp.permissions import Option, Permission
from quintet.providers.acp.record_writer import RecordWriter
from quintet.providers.acp.turn import (
    MessageEnded,
    RunningTurn,
    Said,
    Thought,
    ToolBegan,
    ToolEnded,
    TurnEnd,
    TurnEvent,
    TurnRules,
)
from quintet.providers.acp.usage import NO_TOKENS
from quintet.providers.acp.view import HostPane
from quintet.providers.json_lines import as_object, text_in

START_SECONDS: Final = 60.0
"""how long an agent may be silent until it has its conversation"""
SILENT_SECONDS: Final = 60.0
"""how long it may be silent in a turn before people are told"""
_NO_COMMAND: Final = "\u200b"
"""before a prompt that begins with a slash: agents would take it for a command of their own, some behind blanks too"""
_MOST_JUNK: Final = 20
"""lines that are no messages and are shown all the same"""
SERVER, PERSON = "server", "person"
Clock = Callable[[], float]


class HostEnds(Exception):  # noqa: N818 - reads as what happened
    """The host has nothing more to do; the text is one line for people."""

    def __init__(self, text: str = "", code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Conversation:
    """One agent, its session and its turns. At most one turn runs at a time."""

    def __init__(
        self, settings: HostSettings, cwd: str, pane: HostPane, record: RecordWriter, clock: Clock = time.time
    ) -> None:
        self.settings, self.cwd = settings, cwd
        self.pane, self.record, self.clock = pane, record, clock
        self.send: Callable[[bytes], None] = lambda _: None
        self.session: AcpSession | None = None
        self.turn: RunningTurn | None = None
        self.queue: deque[str] = deque()
        """prompts of a person that wait for the end of the turn"""
        self.asked: deque[Permission] = deque()
        """permissions that a person has to answer"""
        self._calls = json_rpc.Calls()
        self._opening: Opening | None = None
        self._first_prompt: tuple[str, str] | None = None
        """what waits for a conversation that begins with it, and who has sent it"""
        self._waits_for = ""
        self._paused_until: float | None = None
        self._heard = 0.0
        self._is_silent = False
        self._number = 0
        self._begun = 0.0
        self._used = NO_TOKENS
        self._cancelled = False
        self._tell_role = False
        self._junk = 0

    @property
    def at_rest(self) -> bool:
        return self.session is not None and self.turn is None

    def start(self, send: Callable[[bytes], None]) -> None:
        """Begin with a program that has just been started."""
        self.send, self._calls, self._used = send, json_rpc.Calls(), NO_TOKENS
        self._heard, self._paused_until = self.clock(), None
        self._opening = open_session(self.settings, self.cwd, self._heard)
        self.pane.set_state("starting", f"Starting {self.settings.name} …")
        self._advance(None)

    def _advance(self, answer: json_rpc.Response | None) -> None:
        """Take the next steps of the opening, up to one that has to be waited for."""
        while self._opening is not None:
            try:
                step = self._opening.send(answer)
            except StopIteration as end:
                self._opening = None
                self._opened(end.value)
                return
            except OpeningFailed as failed:
                raise HostEnds(str(failed), 1) from None
            if isinstance(step, Warn):
                self._warn(step.text)
                answer = None
            elif isinstance(step, PauseUntil):
                self._paused_until = step.time
                self.pane.dim(f"waiting until {time.strftime('%H:%M:%S', time.localtime(step.time))}: {step.why}")
                return
            else:
                self._ask_agent(step)
                return

    def _ask_agent(self, call: Call) -> None:
        self._waits_for = call.method
        self.send(self._calls.request(call.method, call.params))

    def _opened(self, session: AcpSession) -> None:
        self.session, self._tell_role = session, session.tell_role
        self.record.session(session, self.clock())
        if self._first_prompt is not None:
            self._begin_turn(session, *self._first_prompt)
            return
        model = f" · model {self.settings.model}" if self.settings.model else ""
        mode = f" · mode {self.settings.mode}" if self.settings.mode else ""
        self.pane.dim(f"{session.agent}{model}{mode}")
        if session.loaded:
            self.pane.dim("conversation loaded")
        self.pane.dim("Enter sends what you type, Esc cancels a turn, /exit ends the agent.")
        self.rest()

    def _warn(self, text: str) -> None:
        self.pane.warning(text)
        self.record.warning(text)

    def rest(self) -> None:
        """Between turns: the next prompt that waits, or the line to type in."""
        if self.queue:
            self.prompt(self.queue.popleft(), PERSON)
        else:
            self.pane.set_state("ready")

    def take_line(self, line: bytes) -> None:
        """One line that the agent has written."""
        message = json_rpc.read_message(line)
        if message is None:
            self._junk += 1
            if self._junk <= _MOST_JUNK:
                self.pane.dim(f"no message: {line[:300].decode('utf-8', 'replace')}")
            return
        self._hear()
        if isinstance(message, json_rpc.Response):
            self._take_response(message)
        elif isinstance(message, json_rpc.AgentRequest):
            self._take_request(message)
        elif message.method == "session/update" and self.turn and self._is_ours(message.params):
            self._show(self.turn.take(as_object(message.params.get("update"))))
            self._draw_working()

    def _is_ours(self, params: Mapping[str, Any]) -> bool:
        return self.session is not None and text_in(params, "sessionId") in ("", self.session.id)

    def _take_response(self, response: json_rpc.Response) -> None:
        method = self._calls.answered(response)
        if not method:
            return  # nobody asked, or it was answered before
        if method == "session/prompt":
            if self.turn is not None:
                self._end_turn(self.turn.end(response, self.clock(), cancelled=self._cancelled))
        elif self._opening is not None:
            self._advance(response)

    def _take_request(self, request: json_rpc.AgentRequest) -> None:
        if request.method != "session/request_permission":
            self.send(json_rpc.no_such_method(request.id, request.method))
            return
        permission = permissions.read_permission(request)
        if self.turn is None or self._cancelled or not self._is_ours(request.params):
            self.send(json_rpc.result(request.id, permissions.CANCELLED))
            return
        self._show(self.turn.ask(permission.call))
        if self.settings.asks:
            self.asked.append(permission)
            if len(self.asked) == 1:
                self._ask_person()
        else:
            self._answer(permission, permission.allow() or permission.reject())

    def _words(self, permission: Permission) -> str:
        call = self.turn.calls.get(permission.call_id) if self.turn else None
        return HostPane.tool_words(call) if call else text_in(permission.call, "title") or "to go on"

    def _ask_person(self) -> None:
        permission = self.asked[0]
        self.pane.ask(self._words(permission), [option.name or option.id for option in permission.options])
        self.pane.set_state("asks", "y allows it · n does not · a number chooses · Esc cancels the turn")

    def answer_by_key(self, key: str) -> None:
        """A person's answer to the permission that is asked for; a key that is none changes nothing."""
        option = self.asked[0].by_key(key) if self.asked else None
        if option is not None or (key == "n" and self.asked):
            self._answer(self.asked.popleft(), option)
            if self.asked:
                self._ask_person()
            else:
                self._hear()
                self._draw_working()

    def _answer(self, permission: Permission, option: Option | None) -> None:
        self.send(json_rpc.result(permission.request, permissions.selected(option)))
        words, answer = self._words(permission), option.name or option.id if option else "cancelled"
        granted = permissions.grants(option)
        if not granted and self.turn:
            self.turn.refuse(permission.call_id)
        self.record.permission(words, answer)
        self.pane.dim(f"{'allowed' if granted else 'not allowed'}: {words} ({answer})")

    def prompt(self, text: str, by: str) -> None:
        """Begin a turn; a prompt of a person's waits while one runs."""
        if not self.at_rest or self.session is None:
            self.queue.append(text)
            self.pane.dim("queued: it is sent once the agent is ready")
        elif self.settings.begins_at_prompt and not self._number and not self.session.loaded:
            self._first_prompt = (text, by)
            self._opening, self.session = begin_again(self.settings, self.cwd, self.session), None
            self._hear()
            self._advance(None)
        else:
            self._begin_turn(self.session, text, by)

    def _begin_turn(self, session: AcpSession, text: str, by: str) -> None:
        self._first_prompt = None
        self._number += 1
        self._begun, self._cancelled, self._is_silent = self.clock(), False, False
        rules = TurnRules(self.settings.usage, self.settings.error_prefix, self.settings.note_prefix)
        self.turn = RunningTurn(rules, self._used)
        self.record.begin(self._number, by, self._begun)
        self.pane.prompt(text, by)
        texts = [self.settings.instructions, text] if self._tell_role else [text]
        blocks = [{"type": "text", "text": _NO_COMMAND + one if one.lstrip().startswith("/") else one} for one in texts]
        self._ask_agent(Call("session/prompt", {"sessionId": session.id, "prompt": blocks}))
        self._hear()
        self._draw_working()

    def _draw_working(self) -> None:
        if self.turn is None or self.asked:
            return
        since = time.strftime("%H:%M:%S", time.localtime(self._begun))
        running = self.turn.last_call
        doing = f" · {HostPane.tool_words(running)}" if running else ""
        what = "Cancelling" if self._cancelled else "Working"
        self.pane.set_state("working", f"{what} since {since}{doing}" + ("" if self._cancelled else " · Esc cancels"))

    def _show(self, events: Iterable[TurnEvent]) -> None:
        for event in events:
            if isinstance(event, Said):
                self.pane.say(event.text)
            elif isinstance(event, Thought):
                self.pane.think(event.text)
            elif isinstance(event, MessageEnded):
                self.pane.end_parts()
                self.record.message(event.text)
            elif isinstance(event, ToolBegan):
                self.pane.end_parts()
            elif isinstance(event, ToolEnded) and not event.call.only_asked:
                self.pane.tool(event.call)
                for done in event.call.done():
                    self.record.action(done)

    def _end_turn(self, end: TurnEnd) -> None:
        assert self.turn is not None  # noqa: S101 - the callers have looked
        self._show(self.turn.finish())
        self._used = self.turn.before
        self._tell_role = self._tell_role and end.failed is not None
        self.turn = None
        self.asked.clear()
        now = self.clock()
        self.record.end(self._number, end, now)
        self.pane.turn_end(end, now - self._begun)
        self.rest()

    def cancel(self) -> None:
        """Cancel the turn; a permission that is open has to be answered, or some agents wait for ever."""
        if self.turn is None or self._cancelled or self.session is None:
            return
        self._cancelled = True
        self.send(json_rpc.notification("session/cancel", {"sessionId": self.session.id}))
        while self.asked:
            self._answer(self.asked.popleft(), None)
        self._draw_working()

    @property
    def is_cancelled(self) -> bool:
        return self.turn is not None and self._cancelled

    def _hear(self) -> None:
        self._heard = self.clock()
        if self._is_silent:
            self._is_silent = False
            self.record.note("")

    @property
    def deadline(self) -> float | None:
        """When `tick` has something to do although nothing came."""
        if self._paused_until is not None:
            return self._paused_until
        if self._opening is not None:
            return self._heard + START_SECONDS
        waits = self.turn is not None and not self.asked and not self._is_silent
        return self._heard + SILENT_SECONDS if waits else None

    def tick(self) -> None:
        """Look at the clock."""
        deadline = self.deadline
        if deadline is None or self.clock() < deadline:
            return
        if self._paused_until is not None:
            self._paused_until = None
            self._hear()
            self._advance(None)
        elif self._opening is not None:
            raise HostEnds(
                f"{self.settings.name} has not answered {self._waits_for} within {START_SECONDS:.0f} seconds", 1
            )
        elif self.turn is not None:
            running = self.turn.last_call
            why = f"{HostPane.tool_words(running)[:100]} is running" if running else "it may be retrying"
            note = f"no message from the agent for {SILENT_SECONDS:.0f} s: {why}"
            self._is_silent = True
            self.record.note(note)
            self.pane.dim(note)

    def agent_ended(self, why: str) -> None:
        """The program has ended by itself: a turn that ran has failed."""
        if self.turn is not None:
            self._show(self.turn.finish())
            end = self.turn.died(why, self.clock())
            self.turn = None
            self.record.end(self._number, end, self.clock())
