"""The live view of a run in a terminal; it fits a window of any size."""

import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from quintet.loop.journal import Event
from quintet.program import program
from quintet.roles import ROLES, Role, in_words
from quintet.watch.runs.advice import advise, step_text
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.formatting import clock, one_line, short_number, time_of_day
from quintet.watch.runs.handoffs import SIGNS, Handoff, VerdictKind
from quintet.watch.runs.model import FAIL, GONE, PASS, STOPPED, Run, add_event, timestamp, tokens_of
from quintet.watch.runs.summary import headline

MOST_EVENTS: Final = 200
REFRESHES_A_SECOND: Final = 2
ASK_SECONDS: Final = 2.0
TIGHT, NARROW, WIDE = 48, 64, 90
_VERDICTS: Final = 4
_NAME_WIDTH: Final = max(len(role.name) for role in ROLES) + len(" 1.1")
_VERDICT_WIDTH: Final = len("no verdict")
_FRAME_LINES: Final = 2
"""the blank line above the agents, and the heads of their columns"""
_STATUS_COLOURS: Final = {PASS: "green", FAIL: "red", STOPPED: "yellow", GONE: "yellow"}
_VERDICT_COLOURS: Final = {
    VerdictKind.GOOD: "green",
    VerdictKind.VOID: "magenta",
    VerdictKind.AGAIN: "yellow",
    VerdictKind.BAD: "red",
}
_STATUS_WORDS: Final = {
    "processing": "at work",
    "waiting_user_answer": "asks for permission",
    "error": "has ended",
    "unknown": "starting",
}
_SHORTER: Final = {"has replied": "done", "asks for permission": "asks"}


@dataclass
class LiveFrame:
    """What the live view shows, drawn for a window of any size."""

    run: Run = field(default_factory=Run)
    title: str = ""
    terminal_statuses: Mapping[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> None:
        self.run = add_event(self.run, event)
        self.events = [*self.events, event][-MOST_EVENTS:]

    def draw(self, width: int, height: int, now: float | None = None) -> RenderableType:
        """Draw it in at most `height` lines of `width` columns."""
        now = now or time.time()
        parts: list[RenderableType] = [self._head(width, now)]
        if self.title and height > 20:  # noqa: PLR2004
            parts.append(_line(self.title, "dim"))
        if self.run.is_running:
            parts.append(self._pipeline(width))
        parts += [Text(line, style="yellow", no_wrap=True) for line in self._notice(width)[: max(height - 1, 1)]]
        used = len(parts) + len(ROLES) + _FRAME_LINES
        if not self.run.is_running and used > height:
            return Group(*parts)  # too small for more than the reason of its end
        parts += [Text(""), self._agents(width, now)]
        verdicts = self.run.verdicts[-_VERDICTS:] if height - used > _VERDICTS else self.run.verdicts[-1:]
        used += len(verdicts) + 1 if verdicts else 0
        if verdicts and height >= used:
            parts += [Text(""), *(_verdict(handoff) for handoff in verdicts)]
        room = height - used - 1
        if room > 0:
            lines = self.events[-room:]
            parts += [Text(""), *(_journal_line(event) for event in lines)]
        return Group(*parts)

    def _head(self, width: int, now: float) -> Text:
        run = self.run
        turn = run.current
        text = Text("", no_wrap=True, overflow="ellipsis")
        text.append("quintet  " if width >= NARROW else "", style="bold")
        if run.is_running and turn:
            text.append(f"round {turn.round}, {turn.role.phase}, cycle {turn.cycle}", style="bold cyan")
        else:
            text.append(headline(run), style=f"bold {_STATUS_COLOURS.get(run.status, 'cyan')}")
        text.append(f"   {clock(run.seconds(now))}")
        if run.tokens:
            text.append(f"   {short_number(run.tokens.total)} tokens")
        text.append(f"   {run.id}", style="dim")
        return text

    def _notice(self, width: int) -> list[str]:
        """What the user has to know or to do; never shortened."""
        run = self.run
        texts = [step_text(step) for step in advise(run)[: 1 if run.status == FAIL else None]]
        if run.is_running and run.asking:
            texts = [f"{in_words(run.asking)} asks for permission: {program()} attach {run.asking}"]
        elif run.is_running and run.waiting:
            texts = [run.waiting]
        return [
            line for text in texts for line in textwrap.wrap(one_line(text), max(width, 10), break_on_hyphens=False)
        ]

    def _pipeline(self, width: int) -> Text:
        turn = self.run.current
        names = [_short(role) if width < WIDE else role.label for role in ROLES]
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, (role, name) in enumerate(zip(ROLES, names, strict=True)):
            here = turn is not None and turn.role is role and self.run.is_running
            text.append(" → " if number else "", style="dim")
            text.append(name, style="bold reverse" if here else "default")
        return text

    def _agents(self, width: int, now: float) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=False)
        table.add_column("agent", no_wrap=True)
        table.add_column("status", no_wrap=True, overflow="ellipsis")
        table.add_column("this turn" if width >= TIGHT else "turn", justify="right", no_wrap=True)
        if width >= NARROW:
            table.add_column("tokens", justify="right", no_wrap=True)
            table.add_column("turns", justify="right", no_wrap=True)
        if width >= WIDE:
            table.add_column("last verdict", no_wrap=True, overflow="ellipsis")
        for role in ROLES:
            table.add_row(*self._agent(role, width, now))
        return table

    def _agent(self, role: Role, width: int, now: float) -> list[RenderableType]:
        run, turn = self.run, self.run.current
        here = turn is not None and turn.role is role and run.is_running
        mine = run.of_role(role)
        tokens = tokens_of(mine)
        style = "bold" if here else "default"
        status = self._role_status(role, here, mine)
        cells: list[RenderableType] = [
            Text(role.label, style=style),
            Text(status if width >= TIGHT else _SHORTER.get(status, status), style="cyan" if here else "dim"),
            Text(clock(run.worked(turn, now)) if here and turn else "", style=style),
        ]
        if width >= NARROW:
            cells += [Text(short_number(tokens.total) if tokens else "–"), Text(str(len(mine)))]
        if width >= WIDE:
            judged = next((item for item in reversed(mine) if item.verdict), None)
            verdict = judged.verdict if judged else None
            cells.append(Text(verdict.label, style=_VERDICT_COLOURS[verdict.kind]) if verdict else "")
        return cells

    def _role_status(self, role: Role, here: bool, mine: list[Handoff]) -> str:
        status = self.terminal_statuses.get(role.name, "")
        if self.run.asking == role.name or status == "waiting_user_answer":
            return "asks for permission"
        if here and self.run.waiting:
            return "waits to try again"
        if here:
            return _STATUS_WORDS.get(status, "at work") if status != "unknown" else "at work"
        if status == "error":
            return _STATUS_WORDS[status]
        if role.name not in self.run.terminals:
            return "starting" if self.run.is_running else ""
        return "has replied" if mine else "waits"


def _short(role: Role) -> str:
    return "review" if role.reviews else role.name


def _line(text: str, style: str = "") -> Text:
    return Text(one_line(text), style=style, no_wrap=True, overflow="ellipsis")


def _verdict(handoff: Handoff) -> Text:
    verdict = handoff.verdict
    if verdict is None:
        return Text("")
    text = Text(no_wrap=True, overflow="ellipsis")
    who = f"{handoff.role.label} {handoff.round}.{handoff.cycle}"
    text.append(f"{who:<{_NAME_WIDTH}}  ", style="dim")
    text.append(
        f"{SIGNS[verdict.kind]} {verdict.word or 'no verdict':<{_VERDICT_WIDTH}}",
        style=f"bold {_VERDICT_COLOURS[verdict.kind]}",
    )
    void = "not counted: " if verdict.kind is VerdictKind.VOID else ""
    return text.append(f"  {void}{one_line(verdict.why)}")


def _journal_line(event: Event) -> Text:
    text = Text("", no_wrap=True, overflow="ellipsis")
    return text.append(f"{time_of_day(timestamp(event.at))}  ", style="dim").append(one_line(line_for(event)))


class LiveView(AbstractContextManager["LiveView"]):
    """Shows the run on the alternate screen while it is running, and its last state below the prompt afterwards."""

    def __init__(
        self,
        ask: Callable[[Run], Mapping[str, str]] = lambda _: {},
        console: Console | None = None,
        *,
        pass_screen_follows: bool = False,
    ) -> None:
        self.frame = LiveFrame()
        self._ask = ask
        self._pass_screen_follows = pass_screen_follows
        """whether the caller prints its own screen after a PASS"""
        self._console = console or Console()
        self._live = Live(
            console=self._console,
            screen=True,
            refresh_per_second=REFRESHES_A_SECOND,
            get_renderable=self._draw,
            transient=True,
        )
        self._over = threading.Event()
        self._asking = threading.Thread(target=self._ask_repeatedly, name="quintet-live", daemon=True)

    def __call__(self, event: Event) -> None:
        self.frame.add(event)
        if not self._live.is_started:  # a run that cannot begin shows only its error
            self._live.start()
            self._asking.start()

    def title(self, text: str) -> None:
        self.frame.title = text

    def earlier(self, events: Sequence[Event]) -> None:
        for event in events:
            self.frame.add(event)

    def gone(self) -> None:
        self.frame.run = replace(self.frame.run, status=GONE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if not self._live.is_started:
            return
        self._live.stop()
        if not (self._pass_screen_follows and self.frame.run.status == PASS):
            self._console.print(self.frame.draw(self._console.width, self._console.height - 1))

    def _draw(self) -> RenderableType:
        size = self._console.size
        return self.frame.draw(size.width, size.height)

    def _ask_repeatedly(self) -> None:
        while not self._over.wait(ASK_SECONDS):
            self.frame.terminal_statuses = self._ask(self.frame.run)
