"""A simulated terminal server behind the client's own seam: ours or CAO's, with agents that live in simulated time."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import httpx

from harness.chaos.sim.agents import BY_PROFILE, Agent, is_reminder
from harness.chaos.sim.clock import SimulatedClock
from harness.chaos.sim.disk import Disk
from harness.chaos.sim.moments import Moments
from quintet.api.models import Health
from quintet.roles import Role

Answer = tuple[int, Any]
API_FAULTS: Final = ("slow", "refuses", "500", "500 after it was done", "half an answer", "dropped", "503", "not JSON")


@dataclass(frozen=True)
class Arrival:
    """A prompt that reached an agent."""

    key: str
    """the run and the step, by the dispatch id or by the marker in the prompt"""
    role: str
    terminal: str


@dataclass
class SimulatedServer:
    """What the loop sees of the world, with the faults that are planned for it."""

    own: bool
    story: str
    random: Random
    moments: Moments
    clock: SimulatedClock
    disk: Disk
    manners: dict[int, str] = field(default_factory=dict)
    """what is wrong with the nth turn that any agent begins"""
    api_fault: str = ""
    faulty_requests: int = 0
    """how many requests still meet the fault"""
    down_until: float = 0.0
    agents: dict[str, Agent] = field(default_factory=dict)
    arrivals: list[Arrival] = field(default_factory=list)
    written: list[bytes] = field(default_factory=list)
    """every response that an agent wrote completely"""
    hung: list[Callable[[], None]] = field(default_factory=list)
    """what those would do next that do nothing"""
    turns: int = 0
    misdeed: Callable[[Role, int], None] = lambda role, turn: None  # noqa: ARG005
    """what an agent does in its nth turn that it may not do"""
    state_torn: bool = False
    _created: int = 0
    _only: set[str] | None = None
    """the sessions that the server of the present request looks after"""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # -- what happens to it

    def manner_for(self, agent: Agent) -> str:  # noqa: ARG002 - the plan counts turns, whoever has them
        self.turns += 1
        return self.manners.pop(self.turns, "")

    def lose_terminals(self, *, forget: bool) -> None:
        """Its tmux is killed; a server that was started anew does not even know the terminals."""
        for agent in self.agents.values():
            agent.end("its tmux session was killed")
        if forget:
            self.agents.clear()

    def wake_the_hung(self) -> None:
        hung, self.hung = self.hung, []
        for action in hung:
            action()

    @property
    def living(self) -> set[str]:
        return {agent.id for agent in self.agents.values() if agent.alive}

    def unheard_of(self, told: set[str]) -> set[str]:
        """Terminals that a run cannot know: CAO chooses the name of a session. Until all are ready and the journal
        tells of them, it is only in one answer, and then in the state file."""
        if self.own:
            return set()
        sessions = [agent.session for agent in self.agents.values()]
        alone = {agent.id for agent in self.agents.values() if sessions.count(agent.session) == 1}
        return alone | (self.living - told if self.state_torn else set())

    # -- requests

    def request(self, request: httpx.Request, only: set[str] | None) -> httpx.Response:
        """One request with its fault."""
        path = request.url.path
        self.moments.pass_by(f"{request.method} {path}")
        if self.moments.dead:
            raise httpx.ConnectError("the process is gone")
        with self._lock, self.moments.of_others():
            self._only = only
            answer = self._faulty(request)
        self.moments.pass_by(f"answer {path}")
        return answer

    def _faulty(self, request: httpx.Request) -> httpx.Response:
        if self.clock.now() < self.down_until:
            raise httpx.ConnectError("connection refused")
        fault = ""
        if self.faulty_requests > 0 and threading.current_thread() is threading.main_thread():
            self.faulty_requests -= 1
            fault = self.api_fault
        match fault:
            case "":
                return self._answer(request)
            case "refuses":
                raise httpx.ConnectError("connection refused")
            case "500" | "503":
                return httpx.Response(int(fault), json={"detail": "a fault"})
            case "slow":
                return self._slow(request)
        self._answer(request)
        match fault:
            case "500 after it was done":
                return httpx.Response(500, json={"detail": "a fault"})
            case "half an answer":
                raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")
            case "not JSON":
                return httpx.Response(200, content=b'{"id": "abc", "sta')
        raise httpx.ReadError("connection reset")

    def _slow(self, request: httpx.Request) -> httpx.Response:
        """The answer comes after some seconds, or after the client has given up."""
        patience = request.extensions["timeout"]["read"]
        seconds = self.random.choice((0.5, 8.0, 30.0))
        answer = self._answer(request)
        self.clock.elapse(min(seconds, patience))
        if seconds >= patience:
            raise httpx.ReadTimeout("timed out")
        return answer

    def _answer(self, request: httpx.Request) -> httpx.Response:
        params = dict(parse_qsl(request.url.query.decode(), keep_blank_values=True))
        if body := request.read():
            params |= json.loads(body)
        code, answer = self._route(request.method, request.url.path.strip("/").split("/"), params)
        return httpx.Response(code, json=answer)

    def _route(self, method: str, parts: list[str], params: dict[str, str]) -> Answer:
        match method, parts:
            case "GET", ["health"]:
                return 200, {"status": "ok", "service": Health().service if self.own else "cli-agent-orchestrator"}
            case "POST", ["sessions"]:
                return 201, self._create(params, full_name(params.get("session_name", f"simulated-{self._created}")))
            case "POST", ["sessions", name, "terminals"]:
                name = full_name(unquote(name))
                if not self._served(name) or not any(agent.session == name for agent in self.agents.values()):
                    return 404, {"detail": f"Session '{name}' not found"}
                return 201, self._create(params, name)
            case "DELETE", ["sessions", name]:
                return self._end_session(full_name(unquote(name)))
            case _, ["terminals", terminal, *rest] if terminal in self.agents and self._served(
                self.agents[terminal].session
            ):
                return self._terminal(method, self.agents[terminal], rest, params)
        return 404, {"detail": f"'{'/'.join(parts)}' not found"}

    def _end_session(self, name: str) -> Answer:
        doomed = [agent for agent in self.agents.values() if agent.session == name]
        if not doomed or not self._served(name):
            return 404, {"detail": f"Session '{name}' not found"}
        for agent in doomed:
            agent.end("its session was ended")
            del self.agents[agent.id]
        return 200, {"success": True}

    def _served(self, session: str) -> bool:
        return self._only is None or session in self._only

    def _create(self, params: dict[str, str], session: str) -> dict[str, Any]:
        self._created += 1
        if self._only is not None:
            self._only.add(session)
        role = BY_PROFILE[params["agent_profile"]]
        agent = Agent(self, f"{self._created:08x}", role, params["provider"], session)
        self.agents[agent.id] = agent
        return self._shown(agent)

    def _shown(self, agent: Agent) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": agent.id, "session_name": agent.session, "status": agent.status}
        if self.own:
            last = agent.dispatches[-1] if agent.dispatches else None
            shown |= {"dispatch_id": last, "reason": agent.reason or None, "failure": agent.failure}
        return shown

    def _terminal(self, method: str, agent: Agent, rest: list[str], params: dict[str, str]) -> Answer:
        match method, rest:
            case "GET", []:
                return 200, self._shown(agent)
            case "GET", ["output"]:
                return 200, {"output": agent.screen, "mode": "last"}
            case "POST", ["exit"]:
                agent.end("it was ended")
                return 200, {"success": True}
            case "POST", ["key"]:
                if not agent.asking:
                    return 409, {"detail": f"Terminal '{agent.id}' does not ask anything"}
                agent.answered()
                return 200, {"success": True}
            case "POST", ["input"]:
                return self._input(agent, params["message"], params.get("dispatch_id", ""))
            case "DELETE", []:
                agent.end("it was deleted")
                del self.agents[agent.id]
                return 200, {"success": True}
        return 404, {"detail": "Not Found"}

    def _input(self, agent: Agent, message: str, dispatch: str) -> Answer:
        if not agent.alive:
            return (409, {"detail": f"Terminal '{agent.id}' has ended"}) if self.own else (200, {"success": True})
        if dispatch and dispatch in agent.dispatches:
            return 200, {"success": True}
        if message.startswith("/rename "):
            return 200, {"success": True}
        if agent.asking:
            agent.answered()
            return 200, {"success": True}
        if dispatch:
            agent.dispatches.append(dispatch)
        if not is_reminder(message):
            self.arrivals.append(Arrival(dispatch or marker(message), agent.role.name, agent.id))
        agent.take(message)
        return 200, {"success": True}


def full_name(session: str) -> str:
    """Every session's name begins so."""
    return session if session.startswith("cao-") else f"cao-{session}"


def marker(message: str) -> str:
    """The end marker of a prompt's heredoc, which is the same for the same step of a run, and no other."""
    at = message.rfind("QUINTET_END_")
    return message[at : at + 28] if at >= 0 else message[:80]


class SimulatedTransport(httpx.BaseTransport):
    """The wire."""

    def __init__(self, server: SimulatedServer, only: set[str] | None) -> None:
        self._server = server
        self._only = only
        """the sessions that are served; None: all"""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._server.request(request, self._only)
