"""The routes: CAO 2.5.4's paths, parameters, status codes and JSON, and our own event stream."""

import asyncio
import re
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
from quintet.own_programs import find_program
from quintet.server.http.create_params import check_length, new_session_name, terminal_spec
from quintet.server.names import session_name
from quintet.server.refusals import BadRequest, Conflict
from quintet.server.terminal.agent_terminal import AgentTerminal
from quintet.server.terminal.colour_capture import capture_colours
from quintet.server.terminal.dialogs import accept
from quintet.server.terminal.input import send_message
from quintet.server.terminal.keys import press_keys
from quintet.server.terminal.pane import NO_ANSWER
from quintet.server.terminal.session_manager import SessionManager
from quintet.server.terminal.terminal_spec import TerminalSpec
from quintet.server.terminal.tmux_session import TmuxSession

_KEY = re.compile(r"Up|Down|Left|Right|Enter|Tab|Escape|Space|BSpace|[A-Za-z0-9]|[CMS]-[A-Za-z0-9]")
_DISPATCH = re.compile(r"[A-Za-z0-9._:-]{1,128}")
ACCEPT: Final = "accept"
"""stands for the key that says yes to what the agent asks"""


def _may_answer(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": models.Problem} for code in (400, 401, 403, *codes)}


# the guard asks for the token; here it is only described
router = APIRouter(responses=_may_answer(), dependencies=[Depends(HTTPBearer(auto_error=False))])


async def _manager(request: Request) -> SessionManager:
    # async, or FastAPI would ask a thread for it
    manager: SessionManager = request.app.state.sessions
    return manager


Manager = Annotated[SessionManager, Depends(_manager)]
Spec = Annotated[TerminalSpec, Depends(terminal_spec)]


async def _describe(terminal: AgentTerminal) -> models.Terminal:
    """A terminal as its clients see it, brought up to date."""
    await terminal.refresh()
    facts, report, screen = terminal.facts, terminal.report, terminal.view.screen
    ended = report.status is TerminalStatus.COMPLETED and report.record is not None
    failure = report.record.failure if report.record is not None and report.status in AT_REST else None
    waits = report.status is TerminalStatus.WAITING_USER_ANSWER and facts.ready
    needs_user = report.status is TerminalStatus.WAITING_USER_ANSWER and bool(terminal.user_task)
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
        shell_command=screen.command or None,
        status=report.status,
        last_active=datetime.fromtimestamp(max(facts.launched, facts.typed), UTC),
        turn=facts.turn,
        dispatch_id=facts.dispatches[-1] if facts.dispatches else None,
        reason=report.reason,
        doubt=report.doubt,
        typed_after=terminal.typed_after(),
        last_screen=screen.text.rstrip() if report.status is TerminalStatus.ERROR else None,
        accept_key=terminal.provider.accept_key if waits and terminal.provider.is_permission(screen) else None,
        start_seconds=terminal.provider.start_seconds if needs_user else None,
        attached=await terminal.tmux.count_viewers() > 0 if needs_user else None,
        failure=models.Failure(**asdict(failure)) if failure is not None else None,
        sandbox=facts.sandbox or None,
        network=facts.network or None,
        continues=facts.continues or None,
        refused=[models.RefusedHost(**asdict(one)) for one in terminal.find_refused()],
        usage=report.record.usage if report.record is not None else None,
        actions=terminal.provider.read_actions(terminal.folder, facts.since) if ended else None,
    )


async def _describe_session(session: TmuxSession) -> models.Session:
    first = next((terminal.facts for terminal in session.terminals.values()), None)
    return models.Session(
        id=session.name,
        name=session.name,
        status="unknown" if session.unresponsive else "active" if await session.count_viewers() else "detached",
        reason=NO_ANSWER if session.unresponsive else None,
        working_directory=first.cwd if first else None,
        agent_profile=first.profile if first else None,
    )


async def _until_ready(session: TmuxSession, terminal: AgentTerminal) -> models.Terminal:
    """A creation answers when the agent is ready, or waits for its user; one that ends at once was none."""
    if terminal.startup is not None:
        deadline = asyncio.get_running_loop().time() + terminal.provider.start_seconds
        while not terminal.startup.done() and not terminal.user_task and asyncio.get_running_loop().time() < deadline:
            await asyncio.wait([terminal.startup], timeout=0.1)
    described = await _describe(terminal)
    if terminal.report.status is TerminalStatus.ERROR:
        shown = last_lines(terminal.view.screen.text)
        await session.delete(terminal)
        raise BadRequest(f"Failed to create terminal: {terminal.report.reason}; it showed: {shown}")
    return described


@router.get("/health")
async def health() -> models.Health:
    """Whether the server is up."""
    tmux = "ok" if find_program("tmux") else "unavailable"
    return models.Health(version=__version__, components={"quintet": "ok", "tmux": tmux})


@router.post("/sessions", status_code=201, responses=_may_answer(404, 413))
async def create_session(
    manager: Manager, spec: Spec, session_name: str | None = None, defer_init: bool = False
) -> models.Terminal:
    """Start a session with one terminal; with `defer_init` the answer does not wait until the agent is ready."""
    terminal = await manager.create_session(new_session_name(session_name), spec)
    if defer_init:
        return await _describe(terminal)
    session, _ = await manager.terminal(terminal.facts.id)
    return await _until_ready(session, terminal)


@router.get("/sessions")
async def list_sessions(manager: Manager) -> list[models.Session]:
    """All living sessions."""
    return [await _describe_session(session) for session in await manager.sessions()]


@router.get("/sessions/{name}", responses=_may_answer(404))
async def get_session(manager: Manager, name: str) -> models.SessionDetail:
    """A session and its terminals."""
    session = await manager.session(session_name(name))
    terminals = [await _describe(terminal) for terminal in session.terminals.values()]
    return models.SessionDetail(session=await _describe_session(session), terminals=terminals)


@router.delete("/sessions/{name}", responses=_may_answer(404))
async def delete_session(manager: Manager, name: str) -> models.SessionDeleted:
    """End a session and all its terminals."""
    full = session_name(name)
    await manager.delete_session(full)
    return models.SessionDeleted(deleted=[full])


@router.post("/sessions/{name}/strays", responses=_may_answer(404))
async def end_strays(manager: Manager, name: str, but: str = "") -> models.StraysEnded:
    """End what the turns of a session's terminals, or of all but one, have left running."""
    session = await manager.session(session_name(name))
    return models.StraysEnded(ended=await session.end_strays(but))


@router.post("/sessions/{name}/stop", responses=_may_answer(404))
async def stop_processes(manager: Manager, name: str) -> models.Success:
    """Stop all processes of a session's terminals, until they are continued."""
    await (await manager.session(session_name(name))).stop_processes()
    return models.Success()


@router.post("/sessions/{name}/continue", responses=_may_answer(404))
async def continue_processes(manager: Manager, name: str) -> models.Success:
    """Continue all processes of a session's terminals."""
    await (await manager.session(session_name(name))).continue_processes()
    return models.Success()


@router.post("/sessions/{name}/terminals", status_code=201, responses=_may_answer(404, 409, 413))
async def create_terminal(manager: Manager, name: str, spec: Spec, defer_init: bool = False) -> models.Terminal:
    """Start another terminal in a session."""
    session = await manager.session(session_name(name))
    terminal = await session.add(spec)
    return await _describe(terminal) if defer_init else await _until_ready(session, terminal)


@router.get("/sessions/{name}/terminals", responses=_may_answer(404))
async def list_terminals(manager: Manager, name: str) -> list[models.Terminal]:
    """The terminals of a session, oldest first."""
    session = await manager.session(session_name(name))
    return [await _describe(terminal) for terminal in session.terminals.values()]


@router.get("/terminals/{terminal_id}", responses=_may_answer(404))
async def get_terminal(manager: Manager, terminal_id: TerminalId) -> models.Terminal:
    """How a terminal stands."""
    _, terminal = await manager.terminal(terminal_id)
    return await _describe(terminal)


@router.delete("/terminals/{terminal_id}", responses=_may_answer(404))
async def delete_terminal(manager: Manager, terminal_id: TerminalId) -> models.Success:
    """End a terminal and forget it."""
    await manager.delete_terminal(terminal_id)
    return models.Success()


@router.post("/terminals/{terminal_id}/input", responses=_may_answer(404, 409, 413, 504))
async def send_input(
    manager: Manager,
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
    _, terminal = await manager.terminal(terminal_id)
    await send_message(terminal, text, dispatch)
    return models.Success()


@router.post("/terminals/{terminal_id}/key", responses=_may_answer(404, 409))
async def send_key(manager: Manager, terminal_id: TerminalId, key: str) -> models.Success:
    """Press a key, named as tmux does; `accept` is the one that says yes to what the agent asks."""
    if key != ACCEPT and not _KEY.fullmatch(key):
        raise BadRequest(
            "Invalid tmux key name. Allowed are arrow keys, Enter, Tab, Escape, Space, BSpace, single letters and "
            f"digits, these with C-, M- or S-, and {ACCEPT}."
        )
    _, terminal = await manager.terminal(terminal_id)
    if key == ACCEPT:
        await terminal.refresh()
        if terminal.report.status is not TerminalStatus.WAITING_USER_ANSWER:
            raise Conflict(f"Terminal '{terminal_id}' does not ask anything")
        await accept(terminal)
    else:
        await press_keys(terminal, key)
    return models.Success()


@router.post("/terminals/{terminal_id}/exit", responses=_may_answer(404))
async def exit_terminal(manager: Manager, terminal_id: TerminalId) -> models.Success:
    """End the agent, by its own command where it listens."""
    session, terminal = await manager.terminal(terminal_id)
    await session.end_terminal(terminal)
    return models.Success()


@router.get("/terminals/{terminal_id}/output", responses=_may_answer(404))
async def get_output(manager: Manager, terminal_id: TerminalId, mode: OutputMode = OutputMode.FULL) -> models.Output:
    """What the terminal holds (`full`), or the answer of its last turn (`last`)."""
    _, terminal = await manager.terminal(terminal_id)
    text = await (terminal.output() if mode is OutputMode.FULL else terminal.last_reply())
    return models.Output(output=text, mode=mode)


@router.get("/terminals/{terminal_id}/screen", responses=_may_answer(404))
async def get_screen(manager: Manager, terminal_id: TerminalId) -> models.Picture:
    """What the terminal shows now, in colour."""
    _, terminal = await manager.terminal(terminal_id)
    return await capture_colours(terminal)


@router.get("/terminals/{terminal_id}/working-directory", responses=_may_answer(404))
async def get_working_directory(manager: Manager, terminal_id: TerminalId) -> models.WorkingDirectory:
    """Where the terminal's program is now."""
    _, terminal = await manager.terminal(terminal_id)
    return models.WorkingDirectory(working_directory=await terminal.working_directory())


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def get_events(
    manager: Manager,
    follow: Annotated[bool, Query(description="false ends after what has happened so far")] = True,
    last_event_id: Annotated[str | None, Header(description="go on after this event")] = None,
) -> StreamingResponse:
    """What happens, as server-sent events: snapshot, status, turn, output, draft, initial, terminal, session."""
    stream = manager.events.stream(last_event_id, manager.snapshot, follow=follow)
    return StreamingResponse(stream, media_type="text/event-stream")
