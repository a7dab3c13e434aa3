"""The routes: CAO 2.5.4's paths, parameters, status codes and JSON, and our own event stream."""

import asyncio
import re
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer

from quintet import __version__
from quintet.api import models
from quintet.api.models import OutputMode, TerminalId
from quintet.api.shown import last_lines
from quintet.api.status import AT_REST, TerminalStatus
from quintet.server.http.create_params import check_length, new_session_name, wish
from quintet.server.names import session_name
from quintet.server.refusals import BadRequest, Conflict
from quintet.server.terminal import dialogs as answering
from quintet.server.terminal import input as delivery
from quintet.server.terminal.agent_terminal import MUTE, AgentTerminal, Report, count_viewers
from quintet.server.terminal.colour_capture import picture
from quintet.server.terminal.keys import press
from quintet.server.terminal.session_manager import SessionManager
from quintet.server.terminal.tmux_session import TerminalSpec, TmuxSession

_KEY = re.compile(r"Up|Down|Left|Right|Enter|Tab|Escape|Space|BSpace|[A-Za-z0-9]|[CMS]-[A-Za-z0-9]")
_DISPATCH = re.compile(r"[A-Za-z0-9._:-]{1,128}")
ACCEPT: Final = "accept"
"""stands for the key that says yes to what the agent asks"""


def _may_answer(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": models.Problem} for code in (400, 401, 403, *codes)}


# the guard asks for the token; here it is only described
router = APIRouter(responses=_may_answer(), dependencies=[Depends(HTTPBearer(auto_error=False))])


async def _hub(request: Request) -> SessionManager:
    # async, or FastAPI would ask a thread for it
    hub: SessionManager = request.app.state.hub
    return hub


AHub = Annotated[SessionManager, Depends(_hub)]
AWish = Annotated[TerminalSpec, Depends(wish)]


async def _describe(terminal: AgentTerminal, report: Report | None = None) -> models.Terminal:
    report = report or await terminal.report()
    facts, look = terminal.facts, terminal.seen
    usage = report.record.usage if report.record is not None else None
    ended = report.status is TerminalStatus.COMPLETED and report.record is not None
    failure = report.record.failure if report.record is not None and report.status in AT_REST else None
    waits = report.status is TerminalStatus.WAITING_USER_ANSWER and facts.ready
    needs_user = report.status is TerminalStatus.WAITING_USER_ANSWER and bool(terminal.needs)
    return models.Terminal(
        id=facts.id,
        name=facts.name,
        provider=facts.provider,
        session_name=facts.session,
        agent_profile=facts.profile,
        model=facts.model or None,
        tmux_session=facts.session,
        tmux_window=facts.name,
        working_directory=facts.cwd,
        description=facts.description or None,
        initial_delivery=models.InitialDelivery(state=facts.initial) if facts.initial else None,
        shell_command=look.screen.command or None,
        status=report.status,
        last_active=datetime.fromtimestamp(max(facts.launched, facts.typed), UTC),
        turn=facts.turn,
        dispatch_id=facts.dispatches[-1] if facts.dispatches else None,
        reason=report.reason,
        doubt=report.doubt,
        typed_after=terminal.typed_after(report),
        last_screen=look.screen.text.rstrip() if report.status is TerminalStatus.ERROR else None,
        accept_key=terminal.provider.accept_key if waits and terminal.provider.is_permission(look.screen) else None,
        start_seconds=terminal.provider.start_seconds if needs_user else None,
        attached=await count_viewers(terminal.tmux) > 0 if needs_user else None,
        failure=models.Failure(**asdict(failure)) if failure is not None else None,
        continues=facts.continues or None,
        usage=models.TokenUsage(**asdict(usage)) if usage is not None else None,
        actions=terminal.provider.read_actions(terminal.folder, facts.since) if ended else None,
    )


async def _describe_session(session: TmuxSession) -> models.Session:
    first = next((terminal.facts for terminal in session.terminals.values()), None)
    return models.Session(
        id=session.name,
        name=session.name,
        status="unknown" if session.silent else "active" if await session.viewers() else "detached",
        reason=MUTE if session.silent else None,
        working_directory=first.cwd if first else None,
        agent_profile=first.profile if first else None,
    )


async def _until_ready(session: TmuxSession, terminal: AgentTerminal) -> models.Terminal:
    """A creation answers when the agent is ready, or waits for its user; one that ends at once was none."""
    if terminal.start is not None:
        deadline = asyncio.get_running_loop().time() + terminal.provider.start_seconds
        while not terminal.start.done() and not terminal.needs and asyncio.get_running_loop().time() < deadline:
            await asyncio.wait([terminal.start], timeout=0.1)
    report = await terminal.report()
    if report.status is TerminalStatus.ERROR:
        shown = last_lines(terminal.seen.screen.text)
        await session.delete(terminal)
        raise BadRequest(f"Failed to create terminal: {report.reason}; it showed: {shown}")
    return await _describe(terminal, report)


@router.get("/health")
async def health() -> models.Health:
    """Whether the server is up."""
    tmux = "ok" if shutil.which("tmux") else "unavailable"
    return models.Health(version=__version__, components={"quintet": "ok", "tmux": tmux})


@router.post("/sessions", status_code=201, responses=_may_answer(404, 413))
async def create_session(
    hub: AHub, wish: AWish, session_name: str | None = None, defer_init: bool = False
) -> models.Terminal:
    """Start a session with one terminal; with `defer_init` the answer does not wait until the agent is ready."""
    terminal = await hub.create_session(new_session_name(session_name), wish)
    if defer_init:
        return await _describe(terminal)
    session, _ = await hub.terminal(terminal.facts.id)
    return await _until_ready(session, terminal)


@router.get("/sessions")
async def list_sessions(hub: AHub) -> list[models.Session]:
    """All living sessions."""
    return [await _describe_session(session) for session in await hub.sessions()]


@router.get("/sessions/{name}", responses=_may_answer(404))
async def get_session(hub: AHub, name: str) -> models.SessionDetail:
    """A session and its terminals."""
    session = await hub.session(session_name(name))
    terminals = [await _describe(terminal) for terminal in session.terminals.values()]
    return models.SessionDetail(session=await _describe_session(session), terminals=terminals)


@router.delete("/sessions/{name}", responses=_may_answer(404))
async def delete_session(hub: AHub, name: str) -> models.SessionDeleted:
    """End a session and all its terminals."""
    full = session_name(name)
    await hub.delete_session(full)
    return models.SessionDeleted(deleted=[full])


@router.post("/sessions/{name}/terminals", status_code=201, responses=_may_answer(404, 409, 413))
async def create_terminal(hub: AHub, name: str, wish: AWish, defer_init: bool = False) -> models.Terminal:
    """Start another terminal in a session."""
    session = await hub.session(session_name(name))
    terminal = await session.add(wish)
    return await _describe(terminal) if defer_init else await _until_ready(session, terminal)


@router.get("/sessions/{name}/terminals", responses=_may_answer(404))
async def list_terminals(hub: AHub, name: str) -> list[models.Terminal]:
    """The terminals of a session, oldest first."""
    session = await hub.session(session_name(name))
    return [await _describe(terminal) for terminal in session.terminals.values()]


@router.get("/terminals/{terminal_id}", responses=_may_answer(404))
async def get_terminal(hub: AHub, terminal_id: TerminalId) -> models.Terminal:
    """How a terminal stands."""
    _, terminal = await hub.terminal(terminal_id)
    return await _describe(terminal)


@router.delete("/terminals/{terminal_id}", responses=_may_answer(404))
async def delete_terminal(hub: AHub, terminal_id: TerminalId) -> models.Success:
    """End a terminal and forget it."""
    await hub.delete_terminal(terminal_id)
    return models.Success()


@router.post("/terminals/{terminal_id}/input", responses=_may_answer(404, 409, 413, 504))
async def send_input(
    hub: AHub,
    terminal_id: TerminalId,
    message: str | None = None,
    dispatch_id: str | None = None,
    body: models.InputBody | None = None,
) -> models.Success:
    """Type a message, given in the query or in a JSON body. A dispatch id is typed only once."""
    body = body or models.InputBody()
    text = message if message is not None else body.message
    dispatch = dispatch_id or body.dispatch_id or ""
    if text is None:
        raise RequestValidationError([{"type": "missing", "loc": ("query", "message"), "msg": "Field required"}])
    check_length(text, "message")
    if dispatch and not _DISPATCH.fullmatch(dispatch):
        raise BadRequest("dispatch_id: 1 to 128 letters, digits and . _ : -")
    _, terminal = await hub.terminal(terminal_id)
    await delivery.deliver(terminal, text, dispatch)
    return models.Success()


@router.post("/terminals/{terminal_id}/key", responses=_may_answer(404, 409))
async def send_key(hub: AHub, terminal_id: TerminalId, key: str) -> models.Success:
    """Press a key, named as tmux does; `accept` is the one that says yes to what the agent asks."""
    if key != ACCEPT and not _KEY.fullmatch(key):
        raise BadRequest(
            "Invalid tmux key name. Allowed are arrow keys, Enter, Tab, Escape, Space, BSpace, single letters and "
            f"digits, these with C-, M- or S-, and {ACCEPT}."
        )
    _, terminal = await hub.terminal(terminal_id)
    if key == ACCEPT:
        report = await terminal.report()
        if report.status is not TerminalStatus.WAITING_USER_ANSWER:
            raise Conflict(f"Terminal '{terminal_id}' does not ask anything")
        await answering.accept(terminal)
    else:
        await press(terminal, key)
    return models.Success()


@router.post("/terminals/{terminal_id}/exit", responses=_may_answer(404))
async def exit_terminal(hub: AHub, terminal_id: TerminalId) -> models.Success:
    """End the agent, by its own command where it listens."""
    session, terminal = await hub.terminal(terminal_id)
    await session.end(terminal)
    return models.Success()


@router.get("/terminals/{terminal_id}/output", responses=_may_answer(404))
async def get_output(hub: AHub, terminal_id: TerminalId, mode: OutputMode = OutputMode.FULL) -> models.Output:
    """What the terminal holds (`full`), or the answer of its last turn (`last`)."""
    _, terminal = await hub.terminal(terminal_id)
    text = await (terminal.output() if mode is OutputMode.FULL else terminal.last_reply())
    return models.Output(output=text, mode=mode)


@router.get("/terminals/{terminal_id}/screen", responses=_may_answer(404))
async def get_screen(hub: AHub, terminal_id: TerminalId) -> models.Picture:
    """What the terminal shows now, in colour."""
    _, terminal = await hub.terminal(terminal_id)
    return await picture(terminal)


@router.get("/terminals/{terminal_id}/working-directory", responses=_may_answer(404))
async def get_working_directory(hub: AHub, terminal_id: TerminalId) -> models.WorkingDirectory:
    """Where the terminal's program is now."""
    _, terminal = await hub.terminal(terminal_id)
    return models.WorkingDirectory(working_directory=await terminal.working_directory())


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def get_events(
    hub: AHub,
    follow: Annotated[bool, Query(description="false ends after what has happened so far")] = True,
    last_event_id: Annotated[str | None, Header(description="go on after this event")] = None,
) -> StreamingResponse:
    """What happens, as server-sent events: snapshot, status, turn, output, draft, initial, terminal, session."""
    stream = hub.events.stream(last_event_id, hub.snapshot, follow=follow)
    return StreamingResponse(stream, media_type="text/event-stream")
