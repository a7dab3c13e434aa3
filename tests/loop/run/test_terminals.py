"""The five terminals: created in order, waited for side by side, renamed, found again, ended. A simulated clock."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import pytest

from quintet.api.backend import LaunchOptions, TerminalView
from quintet.api.status import TerminalStatus
from quintet.config import Agent, Settings
from quintet.config.table import OwnProvider
from quintet.errors import ApiError, OutcomeUnknown, PassingFault, Refused, RunError, TerminalGone
from quintet.layout import Workspace, user_state_folder
from quintet.loop.decide.state import State, TerminalRef
from quintet.loop.decide.steps import Ask
from quintet.loop.journal import PermissionAsked, TerminalCreated, TerminalLost, Warned
from quintet.loop.run.terminals import READY_SECONDS, RENAME_SECONDS, Terminals, end_session, end_terminals
from quintet.roles import ANALYST, ROLES, Role
from tests.stub.fake import ERROR, IDLE, PROCESSING, UNKNOWN, WAITING, FakeBackend, FakeClock, store_in

IDS = [f"0000000{number}" for number in range(1, 6)]
NEW = [f"1000000{number}" for number in range(1, 9)]


STEP = Ask(ANALYST, 1)


@dataclass
class FakeServer(FakeBackend):
    """Five terminals whose status is a function of id and time."""

    status: Callable[[str, float], TerminalStatus] = lambda *_: IDLE
    fault: Callable[[str, str], BaseException | None] = lambda *_: None
    """by method and terminal id"""
    calls: list[tuple[str, str]] = field(default_factory=list)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    wishes: list[tuple[str, str]] = field(default_factory=list)
    """session and lost terminal of each creation"""
    options: list[LaunchOptions] = field(default_factory=list)
    """what was said of each"""
    said: str = ""
    """the last lines of a terminal that has failed"""
    told: Callable[[float], dict[str, Any]] = lambda _: {}
    """more of a terminal, as a function of time"""
    first: int = 0
    """how many terminals there were before"""

    def _call(self, method: str, terminal: str) -> None:
        self.calls.append((method, terminal))
        if error := self.fault(method, terminal):
            raise error

    def session_name(self, run_id: str) -> str:  # noqa: ARG002
        return "new" if self.own else ""

    def create_terminal(
        self,
        session_name: str,
        profile: str,  # noqa: ARG002
        provider: str,  # noqa: ARG002
        **options: Unpack[LaunchOptions],
    ) -> TerminalView:
        self.wishes.append((session_name, options.get("continues", "")))
        self.options.append(options)
        terminal = (*IDS, *NEW)[self.first + sum(method == "create" for method, _ in self.calls)]
        self._call("create", terminal)
        return TerminalView(id=terminal, session_name=session_name)

    def get_terminal(self, terminal_id: str, seconds: float = 0.0) -> TerminalView:  # noqa: ARG002
        self._call("status", terminal_id)
        now, continues = self.clock.now(), self.wishes[-1][1] if self.wishes else ""
        told = {"id": terminal_id, "status": self.status(terminal_id, now), "reason": f"no {terminal_id}"}
        return TerminalView.model_validate(told | {"continues": continues} | self.told(now))

    def get_last_lines(self, terminal: TerminalView) -> str:  # noqa: ARG002
        return self.said

    def send_input(self, terminal_id: str, message: str, dispatch_id: str = "", seconds: float = 0.0) -> None:  # noqa: ARG002
        assert seconds <= RENAME_SECONDS, "a server that hangs must not hold up the start"
        self._call("input", terminal_id)
        self.inputs.append((terminal_id, message))

    def exit_terminal(self, terminal_id: str) -> None:
        self._call("exit", terminal_id)

    def delete_session(self, session_name: str) -> None:
        self._call("delete", session_name)

    def forget_terminal(self, terminal_id: str) -> None:
        self._call("forget", terminal_id)


class Stage:
    def __init__(self, wd: Path) -> None:
        self.clock = FakeClock()
        self.server = FakeServer(self.clock)
        self.store = store_in(wd)
        self.events, self.saved = self.store.events, self.store.saved
        self.terminals = Terminals(self.server, Settings(wd=wd), self.clock, self.store)

    def init(self) -> State:
        self.terminals.start_all(STEP, self.server.session_name("r"))
        return self.store.state

    def replace_lost(self, lost: dict[Role, str]) -> State:
        self.terminals.replace_lost(STEP, lost)
        return self.store.state

    @property
    def exited(self) -> set[str]:
        return {terminal for method, terminal in self.server.calls if method == "exit"}

    @property
    def warnings(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Warned)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


REFS = {role: TerminalRef(IDS[i], "codex") for i, role in enumerate(ROLES)}


@pytest.fixture
def saved(stage: Stage) -> State:
    """The state of a run with five terminals."""
    terminals = {role.name: terminal for role, terminal in REFS.items()}
    stage.store.state = State(run_id="run", session_name="old", terminals=terminals)
    return stage.store.state


def test_created_in_role_order_and_saved_one_by_one(stage: Stage) -> None:
    state = stage.init()
    assert [state.terminals[role.name].id for role in ROLES] == IDS
    assert state.session_name == "s"
    known = [[terminal.id for terminal in one.terminals.values() if terminal.id] for one in stage.saved]
    assert known == [IDS[:i] for i in range(6)], "also before the first, so that its session is known"


def test_a_start_that_fails_says_why(stage: Stage) -> None:
    stage.server.said = "cannot be used with root/sudo"
    stage.server.status = lambda terminal, _: ERROR if terminal == IDS[1] else IDLE
    with pytest.raises(RunError, match=rf"\(no {IDS[1]}\); it said: cannot be used with root/sudo$"):
        stage.init()
    assert stage.exited == set(IDS), "and ends all"


def test_an_agent_without_a_login_is_told_of_at_once_and_not_waited_for(stage: Stage) -> None:
    stage.server.told = lambda _: {"start_seconds": 90.0, "attached": False}
    stage.server.status = lambda terminal, _: WAITING if terminal == IDS[2] else IDLE
    with pytest.raises(RunError, match=rf"{IDS[2]}\): no {IDS[2]}; nobody did so within 90 s"):
        stage.init()
    (asked,) = [event for event in stage.events if isinstance(event, PermissionAsked)]
    assert (asked.terminal, asked.reason) == (IDS[2], f"no {IDS[2]}")
    assert 90 < stage.clock.now() < 92
    assert stage.exited == set(IDS), "and nothing is left"


def test_who_is_attached_is_given_the_time_to_log_in(stage: Stage) -> None:
    stage.server.told = lambda now: {"start_seconds": 90.0, "attached": 60 < now < 300}
    stage.server.status = lambda *_: WAITING
    with pytest.raises(RunError, match="nobody did so"):
        stage.init()
    assert 389 < stage.clock.now() < 392, "counted from when the terminal was left"


def test_a_login_in_time_lets_the_run_begin(stage: Stage) -> None:
    stage.server.told = lambda _: {"start_seconds": 90.0, "attached": True}
    stage.server.status = lambda _, now: WAITING if now < 200 else IDLE
    assert stage.init().session_name == "s"


@pytest.mark.parametrize("starting", [PROCESSING, UNKNOWN])
def test_all_are_created_before_any_is_waited_for(stage: Stage, starting: TerminalStatus) -> None:
    """Side by side: the slowest start decides, not the sum. Minutes are no error."""
    stage.server.status = lambda _, now: IDLE if now > 300 else starting
    stage.init()
    methods = [method for method, _ in stage.server.calls]
    assert methods[:5] == ["create"] * 5
    assert 300 < stage.clock.now() < 305
    assert len([event for event in stage.events if isinstance(event, TerminalCreated)]) == 5


def test_a_question_at_the_start_is_told_once_with_what_the_user_has_to_do(stage: Stage) -> None:
    stage.server.status = lambda terminal, now: WAITING if terminal == IDS[0] and now < 20 else IDLE
    stage.init()
    assert [event.reason for event in stage.events if isinstance(event, PermissionAsked)] == [f"no {IDS[0]}"]


def test_never_ready_is_an_error_that_names_who(stage: Stage) -> None:
    stage.server.status = lambda terminal, _: PROCESSING if terminal == IDS[3] else IDLE
    with pytest.raises(RunError, match=r"^peer_programmer: not ready"):
        stage.init()
    assert READY_SECONDS < stage.clock.now() < READY_SECONDS + 1
    assert stage.exited == set(IDS)


@pytest.mark.parametrize(
    "error", [Refused("no"), OutcomeUnknown("dropped"), PassingFault("refused"), KeyboardInterrupt()]
)
def test_a_failed_creation_ends_those_that_exist(stage: Stage, error: BaseException) -> None:
    stage.server.fault = lambda method, terminal: error if (method, terminal) == ("create", IDS[2]) else None
    expected = RunError if isinstance(error, ApiError) else type(error)
    with pytest.raises(expected) as raised:
        stage.init()
    assert isinstance(error, KeyboardInterrupt) or "programmer could not be started" in str(raised.value)
    assert stage.exited == set(IDS[:2])
    assert ("delete", "s") in stage.server.calls, "the third may be there, although nobody was told"


def test_a_cleanup_that_fails_hides_nothing(stage: Stage) -> None:
    faults = {("create", IDS[2]): Refused("the first fault"), ("exit", IDS[0]): OutcomeUnknown("another")}
    stage.server.fault = lambda method, terminal: faults.get((method, terminal))
    with pytest.raises(RunError, match="programmer could not be started: the first fault"):
        stage.init()
    assert stage.exited == set(IDS[:2])


def test_passing_faults_while_waiting_are_outlived(stage: Stage) -> None:
    stage.server.fault = lambda method, _: OutcomeUnknown("x") if method == "status" and stage.clock.now() < 5 else None
    stage.init()
    assert stage.clock.now() >= 5


@pytest.mark.usefixtures("saved")
def test_a_renamed_terminal_has_five_seconds_to_come_to_rest(stage: Stage) -> None:
    stage.server.status = lambda terminal, _: PROCESSING if terminal in IDS[:2] else IDLE
    stage.terminals.rename(REFS)
    assert len(stage.warnings) == 2
    assert RENAME_SECONDS <= stage.clock.now() < RENAME_SECONDS + 1


@pytest.mark.usefixtures("saved")
def test_status_faults_after_a_rename_are_a_warning(stage: Stage) -> None:
    stage.server.fault = lambda method, _: TerminalGone("gone") if method == "status" else None
    stage.terminals.rename(REFS)
    assert len(stage.warnings) == 5


@pytest.mark.usefixtures("saved")
def test_resume_outlives_a_passing_fault_and_gives_up_on_a_lasting_one(stage: Stage) -> None:
    stage.server.fault = lambda *_: PassingFault("away") if stage.clock.now() < 5 else None
    stage.terminals.verify_resume_terminals()
    stage.server.fault = lambda *_: PassingFault("away")
    with pytest.raises(PassingFault):
        stage.terminals.verify_resume_terminals()


def test_ending_tells_whether_the_server_has_answered(stage: Stage, saved: State) -> None:
    api = stage.server
    assert end_terminals(api, saved)
    stage.server.fault = lambda method, _: Refused("answered 401") if method == "exit" else None
    assert not end_terminals(api, saved), "whom the server does not know, it ends nothing for"
    stage.server.fault = lambda _, terminal: PassingFault("refused") if terminal == IDS[2] else None
    assert not end_terminals(api, saved)
    assert end_session(api, State(session_name="s"))
    stage.server.fault = lambda method, _: OutcomeUnknown("dropped") if method == "delete" else None
    assert not end_session(api, State(session_name="s"))


def test_ending_leaves_out_what_does_not_exist(stage: Stage, saved: State) -> None:
    partial = replace(saved, terminals=saved.terminals | {"tester": TerminalRef()})
    end_terminals(stage.server, partial)
    assert stage.exited == set(IDS[:4])


@pytest.fixture
def ours(stage: Stage, saved: State) -> Stage:  # noqa: ARG001
    """A stage whose five terminals exist, on our own server."""
    stage.server.own, stage.server.first = True, len(IDS)
    return stage


def lose(stage: Stage, *gone: str, dead: str = "") -> None:
    stage.server.fault = lambda method, terminal: (
        TerminalGone("gone") if method == "status" and terminal in gone else None
    )
    stage.server.status = lambda terminal, _: ERROR if terminal == dead else IDLE


def test_on_our_own_server_what_is_lost_is_found_out(ours: Stage) -> None:
    lose(ours, IDS[1], dead=IDS[3])
    assert ours.terminals.verify_resume_terminals() == {
        ROLES[1]: "it is gone",
        ROLES[3]: f"no {IDS[3]}",
    }
    assert ours.warnings == []


def test_recovery_that_is_turned_off_leaves_the_old_rule(ours: Stage) -> None:
    ours.terminals = replace(ours.terminals, settings=replace(ours.terminals.settings, recover_terminals=False))
    lose(ours, dead=IDS[3])
    assert ours.terminals.verify_resume_terminals() == {}
    assert len(ours.warnings) == 1
    lose(ours, IDS[1])
    with pytest.raises(RunError, match="of peer_analyst is gone"):
        ours.terminals.verify_resume_terminals()


def test_a_lost_terminal_gets_another_in_the_same_session(ours: Stage, saved: State) -> None:
    state = ours.replace_lost({ROLES[1]: "why"})
    assert [state.terminals[role.name].id for role in ROLES] == [IDS[0], NEW[0], *IDS[2:]]
    assert ours.server.wishes == [("old", IDS[1])]
    assert ("forget", IDS[1]) in ours.server.calls
    assert [state.terminals for state in ours.saved] == [saved.terminals, state.terminals]
    assert not [name for method, name in ours.server.calls if method == "delete"], "the others are still in it"
    lost, created = (event.model_copy(update={"at": ""}) for event in ours.events)
    assert (lost, created) == (
        TerminalLost(role="peer_analyst", terminal=IDS[1], reason="why"),
        TerminalCreated(
            role="peer_analyst", terminal=NEW[0], provider="codex", seconds=0.0, session="old", continues=IDS[1]
        ),
    )


def test_where_all_are_lost_they_get_another_session(ours: Stage) -> None:
    state = ours.replace_lost(dict.fromkeys(ROLES, "why"))
    assert state.session_name == "new"
    assert ours.server.wishes == [("new", terminal) for terminal in IDS]
    named = [[terminal.id for terminal in one.terminals.values()] for one in ours.saved]
    assert named == [[*NEW[:number], *IDS[number:]] for number in range(6)], "the next start finds the rest lost"
    assert {one.session_name for one in ours.saved} == {"new"}, "it is known before it is there"
    assert ("delete", "old") in ours.server.calls


def test_a_conversation_that_cannot_go_on_begins_anew(ours: Stage) -> None:
    lose(ours, dead=NEW[0])
    state = ours.replace_lost({ROLES[4]: "why"})
    assert state.terminals["tester"].id == NEW[1]
    assert ours.server.wishes == [("old", IDS[4]), ("old", "")]
    assert ("forget", NEW[0]) in ours.server.calls
    assert "once more, without the earlier conversation" in ours.warnings[0]
    assert not ours.exited & set(IDS), "the others are left alone"


def test_a_server_that_cannot_start_an_agent_of_the_users_own_is_named_before_anything_is_started(stage: Stage) -> None:
    agents = {**Settings().agents, "tester": Agent("mine", "tester")}
    own = replace(stage.terminals.settings, agents=agents, providers={"mine": OwnProvider(("x",))})
    stage.terminals = replace(stage.terminals, settings=own)
    with pytest.raises(RunError, match="mine: this terminal server cannot start an agent of your own"):
        stage.init()
    assert stage.server.calls == []


def test_a_definition_travels_with_the_creation_of_its_terminal(ours: Stage) -> None:
    agents = {**Settings().agents, "tester": Agent("mine", "tester")}
    providers = {"mine": OwnProvider(("x", "acp"), {"K": "v"}, mode="free")}
    ours.terminals = replace(
        ours.terminals, settings=replace(ours.terminals.settings, agents=agents, providers=providers)
    )
    ours.init()
    told = [options.get("agent") for options in ours.server.options]
    assert told[:4] == [None] * 4
    assert told[4] is not None
    assert told[4].model_dump(exclude_defaults=True) == {"command": ["x", "acp"], "env": {"K": "v"}, "mode": "free"}


def test_a_server_that_cannot_be_told_to_let_its_agents_ask(stage: Stage) -> None:
    stage.terminals = replace(stage.terminals, settings=replace(stage.terminals.settings, permissions="ask"))
    stage.init()
    (warning,) = [event.text for event in stage.events if isinstance(event, Warned)]
    assert "PERMISSIONS=ask has no effect" in warning


def in_sandbox(stage: Stage) -> Terminals:
    return replace(stage.terminals, settings=replace(stage.terminals.settings, sandbox="on"))


def test_a_server_that_ignores_the_wish_for_a_sandbox_gets_no_prompt(stage: Stage) -> None:
    with pytest.raises(RunError, match="it was started with another setting of SANDBOX"):
        in_sandbox(stage).start_all(STEP, "s")
    assert stage.exited == set(IDS)
    assert stage.server.inputs == []


@pytest.mark.usefixtures("saved")
def test_a_terminal_outside_of_the_sandbox_counts_as_lost(stage: Stage) -> None:
    terminals = in_sandbox(stage)
    assert set(terminals.find_lost().values()) == {"it was started with another setting of SANDBOX"}
    with pytest.raises(RunError, match="was started with another setting of SANDBOX; RESUME=0"):
        terminals.verify_resume_terminals()


def test_a_sandbox_hides_the_records_and_what_is_in_the_checkouts_tmp(stage: Stage, tmp_path: Path) -> None:
    settings = replace(stage.terminals.settings, sandbox="on", sandbox_hide=("x",), sandbox_network="none")
    settings = replace(settings, chosen=Workspace(tmp_path / "checkout", tmp_path / "tree", "b"))
    sandbox = replace(stage.terminals, settings=settings)._sandbox(ROLES[0])
    assert sandbox is not None
    assert sandbox.hide == [str(user_state_folder()), str(tmp_path / "checkout" / ".tmp"), "x"]
    assert sandbox.show == [str(tmp_path / "checkout")]
    assert sandbox.network == "none"
