"""Draft a task file: one agent explores the project and writes the file, and Quintet looks at what it wrote."""

import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final

from quintet import command, files
from quintet.api.backend import Backend, LaunchOptions, TerminalView
from quintet.api.client import ApiClient
from quintet.api.quintet_backend import backend_of
from quintet.api.status import AT_REST, TerminalStatus
from quintet.config import Settings
from quintet.errors import NotGuarded, RunError, TaskError
from quintet.guard import Rules, Snapshot, Store, compare, look, take, undo
from quintet.layout import RESPONSE_DIR, TMP, user_state_folder
from quintet.loop.decide.checks import Check, task_checks
from quintet.loop.decide.lint import Finding, lint
from quintet.loop.decide.markup import normalise
from quintet.loop.record.lock import directory_lock
from quintet.loop.record.responses import make_tmp
from quintet.loop.record.signals import Signals
from quintet.loop.run.confined import ConfinedCommands
from quintet.loop.run.terminals import own_agent
from quintet.program import program
from quintet.prose import plural
from quintet.roles import ANALYST
from quintet.server.http.embedded import EmbeddedServer
from quintet.setup.sandboxing import agent_sandbox, refuse_without_sandbox
from quintet.setup.tasks import shipped_template

Tell = Callable[[str], None]
NAME: Final = "draft.md"
LOOK_SECONDS: Final = 0.2
READY_SECONDS: Final = 300.0
_LONGEST: Final = 1_000_000
"""bytes of a draft"""
CHECK_SECONDS: Final = 120.0
"""for a check of the draft, and for the program that reads an issue"""


@dataclass(frozen=True)
class TaskDraft:
    """What an agent has written, and what is wrong with it."""

    text: str
    findings: list[Finding]
    fails_today: list[str]
    """its checks that fail before anything is done, as they should"""
    doubts: list[str]
    """about its checks"""


def draft_task(wish: str, settings: Settings, tell: Tell) -> TaskDraft:
    """Let the analyst's agent write a task file for a wish. What it changes in the project is undone."""
    if not wish.strip():
        raise TaskError("there is no wish: say in one line what you want, or name a file with --from")
    if settings.api:
        raise TaskError("a draft is made on Quintet's own server; leave API out")
    refuse_without_sandbox(settings)
    wd = settings.wd
    place = user_state_folder() / "drafts" / secrets.token_hex(6)
    with directory_lock(wd), Signals() as signals, _private_folder(place):
        return _Drafting(settings, place, tell, signals).run(wish)


@dataclass(frozen=True)
class _Drafting:
    """One draft, in a terminal of its own."""

    settings: Settings
    place: Path
    """a private folder"""
    tell: Tell
    signals: Signals

    @property
    def response(self) -> Path:
        """Where the agent's file is found; in a sandbox it has another `.tmp`."""
        tmp = self.place / "tmp" if self.settings.is_sandboxed else self.settings.wd / TMP
        return tmp / RESPONSE_DIR.relative_to(TMP) / NAME

    @property
    def _below(self) -> Path:
        """Below this folder the agent can make links, which are not followed."""
        return self.place if self.settings.is_sandboxed else self.settings.wd

    def run(self, wish: str) -> TaskDraft:
        """Let the agent write, then try the checks that it wrote. What either changes is undone."""
        with self._guarded():
            text = self._ask(wish)
            checks = task_checks(text)
            outcomes = {check.title: self._try_check(check) for check in checks}
        red = [title for title, outcome in outcomes.items() if outcome.exit_code not in (0, command.TIMED_OUT)]
        return TaskDraft(text, lint(text), red, list(_doubts(outcomes)))

    def _try_check(self, check: Check) -> command.Outcome:
        """Run a check as a run would, with no agent's logins: nobody has read it yet."""
        commands = ConfinedCommands(self.settings, self.settings.wd, self.place / "checks")
        return commands.run(check.command, CHECK_SECONDS, self.signals.deferred)

    def _ask(self, wish: str) -> str:
        """What the agent writes for the wish."""
        make_tmp(self.settings.wd)
        files.make_folder(self.response.parent, self._below)
        with suppress(FileNotFoundError):
            files.remove(self.response, self._below)
        session = f"quintet-draft-{secrets.token_hex(4)}"
        with EmbeddedServer([session]) as server:
            backend = backend_of(ApiClient(server.url, str(self.settings.wd), token=server.token))
            try:
                terminal = self._start(backend, session)
                backend.send_input(terminal, self._prompt(wish), "draft")
                return self._wait(backend, terminal)
            finally:
                backend.delete_session(session)

    def _start(self, backend: Backend, session: str) -> str:
        agent = self.settings.agents[ANALYST.name]
        options: LaunchOptions = {
            "model": agent.model,
            "args": agent.args,
            "permissions": self.settings.permissions,
            "sandbox": agent_sandbox(self.settings, self.settings.agents[ANALYST.name].provider, self.place / "tmp"),
            "agent": own_agent(self.settings, agent.provider),
        }
        made = backend.create_session(agent.profile, agent.provider, session_name=session, **options)
        self.tell(f"{agent.provider} explores the project ...")
        self._until(backend, made.id, lambda view: view.status in AT_REST, READY_SECONDS, "it did not get ready")
        return made.id

    def _prompt(self, wish: str) -> str:
        path = self.settings.wd / RESPONSE_DIR / NAME
        values = {
            "wish": wish.strip(),
            "template": shipped_template().replace("<<task>>", "(one line that says what the task is)").strip(),
            "path": str(path),
            "quoted_path": shlex.quote(str(path)),
            "marker": f"QUINTET_END_{secrets.token_hex(8).upper()}",
        }
        text = (resources.files(__package__) / "draft-prompt.md").read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"{{{{{name}}}}}", value)
        return text

    def _wait(self, backend: Backend, terminal: str) -> str:
        """Wait until the agent is at rest and its file is there."""
        seconds = self.settings.response_timeout
        self._until(backend, terminal, lambda view: view.status in AT_REST, seconds, "it is still at work")
        try:
            found = files.read(self.response, _LONGEST, self._below)
        except OSError:
            view = backend.get_terminal(terminal)
            why = view.failure.text if view.failure else "it wrote none"
            raise RunError(f"there is no draft: {why}") from None
        text = normalise(found.decode("utf-8", "replace")).strip()
        if not text:
            raise RunError("there is no draft: the agent wrote an empty file")
        return f"{text}\n"

    def _until(
        self, backend: Backend, terminal: str, done: Callable[[TerminalView], bool], seconds: float, otherwise: str
    ) -> None:
        """Look at the terminal until something is so; whoever is asked for permission is told once."""
        deadline, told = time.monotonic() + seconds, False
        while not done(view := backend.get_terminal(terminal)):
            if view.status is TerminalStatus.ERROR:
                said = backend.get_last_lines(view)
                raise RunError(f"the agent has ended: {view.reason or said or 'nobody knows why'}")
            if view.status is TerminalStatus.WAITING_USER_ANSWER and self.settings.auto_accept_permissions:
                backend.accept_permission(terminal)
            elif view.status is TerminalStatus.WAITING_USER_ANSWER and not told:
                told = True
                self.tell(f"The agent asks something: {program()} attach --session {view.session_name}")
            if time.monotonic() > deadline:
                raise RunError(f"{otherwise} after {seconds:g} s")
            time.sleep(LOOK_SECONDS)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Undo what the agent changes, where the project is in a repository."""
        store = Store(self.place / "guard")
        try:
            before: Snapshot | None = take(self.settings.wd, store, "draft")
        except NotGuarded:
            before = None
            self.tell("What the agent changes is not undone: the project is in no git repository.")
        try:
            yield
        finally:
            if before is not None:
                self._undo(before, store)
            store.close()

    def _undo(self, before: Snapshot, store: Store) -> None:
        split = Rules().split(compare(before, look(before, store)))
        if split.forbidden:
            patch = user_state_folder() / "drafts" / f"{self.place.name}.patch"
            undo(split, before, store, patch)
            number = plural(len(split.forbidden), "change")
            self.tell(f"{number} of the agent and its checks to the project undone; kept as {patch}")


@contextmanager
def _private_folder(path: Path) -> Iterator[None]:
    files.make_folder(path)
    try:
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _doubts(outcomes: Mapping[str, command.Outcome]) -> Iterator[str]:
    """What is doubtful about the checks of a task: they have to fail today."""
    if not outcomes:
        yield "it has no verify block: a PASS would rest on the tester's word alone"
    for title, outcome in outcomes.items():
        if outcome.exit_code == 0:
            yield f"{title} succeeds today, before anything is done: it proves nothing"
        if outcome.exit_code == command.TIMED_OUT:
            yield f"{title} has not ended within {CHECK_SECONDS:g} s: whether it fails today is not known"


def read_wish(words: tuple[str, ...], source: Path | None, issue: str, wd: Path, given: Callable[[], str]) -> str:
    """The wish: words, a file, an issue of the tracker, or what is given on standard input."""
    if sum(map(bool, (words, source, issue))) > 1:
        raise TaskError("name one wish: words, --from FILE, or --issue NUMBER")
    if source is not None:
        try:
            return files.read(source, _LONGEST).decode("utf-8", "replace")
        except OSError as error:
            raise TaskError(f"{source}: cannot be read ({error.strerror})") from None
    return _read_issue(issue, wd) if issue else " ".join(words) if words else given()


def _read_issue(issue: str, wd: Path) -> str:
    """The text of an issue, by gh, or by glab where that is the one that is installed."""
    said = ""
    for tool in ("gh", "glab"):
        run = partial(command.run, cwd=wd, timeout=CHECK_SECONDS, env={"NO_COLOR": "1", "GH_PROMPT_DISABLED": "1"})
        outcome = run([tool, "issue", "view", issue.lstrip("#")])
        if outcome.exit_code == 0:
            return outcome.output
        if outcome.exit_code != command.NOT_FOUND:
            said = said or f"{tool}: {outcome.last_line}"
    raise TaskError(f"issue {issue} cannot be read: {said or 'neither gh nor glab is installed'}")
