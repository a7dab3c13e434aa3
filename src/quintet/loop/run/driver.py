"""A run from its start to its end: decide the next step, carry it out, record what came of it."""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from quintet.config import Settings
from quintet.config.load import Loaded
from quintet.errors import Paused, QuintetError, StateError, StoppedOnPurpose, TokensUsedUp
from quintet.layout import private_git_folder
from quintet.loop.decide import flow
from quintet.loop.decide.state import State, Status, has_all_terminals
from quintet.loop.decide.steps import (
    Ask,
    Closed,
    Finished,
    FollowUp,
    PersonAnswered,
    Resumed,
    Step,
    Stopped,
    TerminalsEnded,
    Verify,
    WaitForPerson,
)
from quintet.loop.decide.task import Task, given_task, saved_task
from quintet.loop.journal import Event, RunFinished, RunResumed, RunStarted, RunStopped, Warned
from quintet.loop.record.lock import directory_lock
from quintet.loop.record.orphans import is_folder_name
from quintet.loop.record.run_record import RunRecord
from quintet.loop.record.signals import Interrupted, Signals
from quintet.loop.record.store import Listener, RunStore
from quintet.loop.run import after_pass
from quintet.loop.run.agent_steps import AgentSteps
from quintet.loop.run.checks import refuse_green_start, run_checks
from quintet.loop.run.clock import Clock, RealClock
from quintet.loop.run.connection import Connect, ServerConnection
from quintet.loop.run.fixed_settings import keep_settings, keep_texts
from quintet.loop.run.gates import wait_for_person
from quintet.loop.run.guarding import TreeGuard
from quintet.loop.run.protection import Protection
from quintet.loop.run.resume import Found, archive_previous, can_resume, check_task, find_saved, new_run_id
from quintet.loop.run.stopped_agents import StoppedAgents
from quintet.loop.run.strays import end_strays
from quintet.loop.run.terminals import Terminals, end_terminals_of
from quintet.loop.run.work_tree import dirty_paths, head_commit, uncommitted
from quintet.loop.run.worktree_setup import set_up_worktree
from quintet.prose import plural
from quintet.sandbox.private_git import remove_masks

EXIT_CODES: Final = {Status.PASS: 0, Status.FAIL: 1, Status.RUNNING: 1}


class Ended(NamedTuple):
    """How a start of a run has ended."""

    exit_code: int
    state: State
    """of the run; blank where there is none"""
    reason: str = ""
    """why it was stopped"""


@dataclass(frozen=True)
class Driver:
    """Starts or resumes the run of one directory, and carries it to its end."""

    settings: Settings
    connect: Connect
    listeners: Sequence[Listener] = ()
    clock: Clock = RealClock()
    named: str = ""
    """the task that the command line names, as one types it; where it names none, an unfinished run goes on"""
    early: Sequence[Event] = ()
    """what to tell in the journal of the run, once there is one"""
    loaded: Loaded | None = None
    """where the settings came from, for a run that is to keep them"""
    reload: bool = False
    """whether a run that goes on takes the settings and prompt texts as they are now"""

    def run(self) -> Ended:
        """Carry the task to its end."""
        with directory_lock(self.settings.workspace.tree), Signals() as signals:
            try:
                run = self._open(signals)
            except Interrupted as interrupt:
                return Ended(interrupt.exit_code, State())
            return run.carry_out()

    def _open(self, signals: Signals) -> "_Run":
        """Find out whether a saved run goes on, and open its folder or that of a new one."""
        settings, early = self.settings, list(self.early)
        found = find_saved(settings, lambda text: early.append(Warned(text=text)))
        saved = found.resumable
        if saved:
            check_task(saved, settings, self.named)
            # a state that another tool has written knows no run id, and that of a copied project has another run's
            known = is_folder_name(saved.run_id) and not RunRecord(settings.workspace.tree, saved.run_id).is_taken
            run_id = saved.run_id if known else new_run_id()
            state = flow.resumed_state(saved, settings, run_id)
            task, earlier = saved_task(state.prompt, settings), [saved]
        else:
            task, earlier = given_task(settings), found.earlier
            state = flow.first_state(settings, new_run_id(), head_commit(settings.workspace.tree))
        settings = self._keep(settings, RunRecord(settings.workspace.tree, state.run_id), anew=not saved or self.reload)
        store = RunStore(settings, signals, self.listeners, state, early, owns_state_file=saved is not None)
        sessions = [one.session_name for one in earlier if one.session_name]
        server = ServerConnection(self.connect, state.api, sessions, self.clock, store.warn)
        return _Run(
            settings,
            self.clock,
            found,
            task,
            store,
            server,
            TreeGuard(settings, store),
            Protection(settings, store),
            StoppedAgents(server, store),
        )

    def _keep(self, settings: Settings, record: RunRecord, *, anew: bool) -> Settings:
        """Keep the settings and the user's own prompt texts in the run's record; the settings with those texts."""
        record.open()
        if self.loaded:
            keep_settings(self.loaded, record, anew=anew)
        return keep_texts(settings, record)


@dataclass(frozen=True)
class _Run:
    """A run whose folder is open, with all that it needs to get to its end."""

    settings: Settings
    clock: Clock
    found: Found
    task: Task
    store: RunStore
    server: ServerConnection
    guard: TreeGuard
    protection: Protection
    stopped_agents: StoppedAgents

    def carry_out(self) -> Ended:
        """Begin, carry out step after step, and close the run, or stop it so that the next start goes on."""
        with self._ending():
            try:
                self._begin()
                return Ended(EXIT_CODES[self._close(self._carry_out_steps())], self.store.state)
            except Interrupted as interrupt:
                code, reason = interrupt.exit_code, self._stop(f"interrupted by {interrupt}")
            except StoppedOnPurpose as error:
                tokens = self.settings.max_tokens if isinstance(error, TokensUsedUp) else 0
                code, reason = error.exit_code, self._stop(str(error), max_tokens=tokens)
            except QuintetError as error:
                code, reason = 1, self._stop(str(error))
            return Ended(code, self.store.state, reason)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.store.signals.last_words()
            self.stopped_agents.go_on()
            self.store.notifier.flush()
            self.server.close()

    def _next_step(self) -> Step:
        return flow.next_step(self.store.state, self.settings)

    # -- the beginning

    def _begin(self) -> None:
        step = self._next_step()
        if self.found.resumable is None:
            self._start(step)
        else:
            self._resume(step)

    def _start(self, step: Step) -> None:
        """Begin a new run: archive what was there, see that its checks fail, and start the terminals."""
        settings, state, backend = self.settings, self.store.state, self.server.backend()
        session = backend.session_name(state.run_id)
        dirty = dirty_paths(settings)
        self.store.emit(
            RunStarted(
                run_id=state.run_id,
                wd=state.wd,
                start_agent=settings.start_agent,
                start_commit=state.start_commit,
                dirty=dirty,
                session=session,
                task_file=settings.prompt_file,
                project=str(settings.workspace.project) if settings.workspace.is_worktree else "",
                branch=settings.workspace.branch,
            )
        )
        set_up_worktree(settings, self.store)
        self.guard.start(dirty, [old.run_id for old in self.found.earlier if is_folder_name(old.run_id)])
        self.protection.start()
        if settings.commits and (changes := uncommitted(settings)):
            number = plural(len(changes), "uncommitted change")
            self.store.warn(f"the work tree has {number}, which will be in the commit after a PASS")
        archive_previous(self.found, self.store, backend)
        if isinstance(step, Verify):
            done = run_checks(step, settings, self.store, self.protection)
            self.store.fold(step, done)
            refuse_green_start(done, settings)
        Terminals(backend, settings, self.clock, self.store).start_all(self._next_step(), session)

    def _resume(self, step: Step) -> None:
        """Go on with the saved run; its terminals are needed unless it has passed, for a check may fail."""
        self.store.people.clear_pause()
        self.guard.resume(step)
        state, needs_terminals = self.store.state, isinstance(step, Ask | Verify)
        if needs_terminals:
            self.server.backend()
        self.store.emit(RunResumed(run_id=state.run_id, step=step.key))
        if self.settings.prompt.strip() and self.settings.prompt != state.prompt:
            own = "the prompt differs from that of the saved run, which goes on with its own"
            self.store.warn(f"{own}; RESUME=0 begins a new run")
        if needs_terminals:
            self.stopped_agents.go_on_after_kill()
            self._ensure_terminals(step)
        self.store.fold(step, Resumed())

    def _ensure_terminals(self, step: Step) -> None:
        """Give the saved run terminals that are there: its own, or new ones where they were ended or lost."""
        backend = self.server.backend()
        terminals = Terminals(backend, self.settings, self.clock, self.store)
        if has_all_terminals(self.store.state):
            if lost := terminals.verify_resume_terminals():
                terminals.replace_lost(step, lost)
            return
        end_terminals_of(backend, self.store.state)
        self.store.fold(step, TerminalsEnded())
        terminals.start_all(step, backend.session_name(self.store.state.run_id))

    # -- the steps

    def _carry_out_steps(self) -> Finished:
        while not isinstance(step := self._next_step(), Finished):
            match step:
                case Ask():  # has several outcomes, each of which is folded in before the next thing is done
                    self._pause_if_wanted(step)
                    self._agents.ask(step)
                case WaitForPerson():
                    self._wait_for_person(step)
                case Verify():
                    self._verify(step)
                case FollowUp():
                    self.store.fold(step, after_pass.carry_out(step, self.settings, self.store.state))
        return step

    def _verify(self, step: Verify) -> None:
        """Run checks while no agent does anything. After a PASS that lasts until its work is committed."""
        self.stopped_agents.stop()
        self.store.fold(step, run_checks(step, self.settings, self.store, self.protection))
        if isinstance(self._next_step(), Ask | WaitForPerson):
            self.stopped_agents.go_on()

    def _pause_if_wanted(self, step: Ask) -> None:
        """Stop before a prompt that was not sent yet, where a person has asked for that."""
        if self.store.state.dispatched != step.key and (by := self.store.people.wants_pause()):
            raise Paused(f"paused by {by}")

    def _wait_for_person(self, step: WaitForPerson) -> None:
        """Wait for a person's word. The terminals may have ended meanwhile."""
        outcome = wait_for_person(step, self.settings, self.store, self.clock)
        self.store.fold(step, outcome)
        if isinstance(outcome, PersonAnswered) and isinstance(following := self._next_step(), Ask | Verify):
            self._ensure_terminals(following)

    @cached_property
    def _agents(self) -> AgentSteps:
        """Made when the first agent is asked: what follows a PASS needs no server."""
        return AgentSteps.over(
            self.server.backend(), self.settings, self.clock, self.task, self.store, guard=self.guard
        )

    # -- the end

    def _close(self, step: Finished) -> Status:
        """Close the run. The state says so last: whatever kills the run before that, the next start closes it."""
        number = self.store.responses.sweep(self.store.state.sequence)
        if late := number - self.store.state.sequence:
            told = f"{plural(late, 'response file')} came after the replies were taken"
            self.store.warn(f"{told}, and {'is' if late == 1 else 'are'} kept in the archive")
        for note in self.store.people.notes():
            if note.id not in self.store.state.notes_sent:
                asked = f"{note.role or 'nobody'} was {'not ' if note.role else ''}asked again"
                self.store.warn(f"a note of {note.by} was not sent, because {asked}: {note.text}")
        cleaned_up = self.settings.cleanup_on_exit and self._end_terminals()
        self.store.emit(
            RunFinished(
                status=step.status,
                round=self.store.state.current_round,
                checks=self.store.state.checked,
                cleaned_up=cleaned_up,
                head=head_commit(self.settings.workspace.tree),
            )
        )
        self.store.fold(step, Closed(number))
        self.guard.close()
        self.protection.close()
        return step.status

    def _stop(self, reason: str, max_tokens: int = 0) -> str:
        """Leave a state that the next start goes on from; returns the reason, with what failed on the way."""
        store, step = self.store, self._next_step()
        store.signals.last_words()
        if store.owns_state_file:
            try:
                store.fold(step, Stopped(reason))
            except StateError as error:
                reason = f"{reason}; {error}"
        cleaned_up = self.settings.cleanup_on_exit and self.server.is_connected and self._end_terminals()
        self.guard.stop()
        if cleaned_up and store.owns_state_file:  # what was ended is not resumed into
            with contextlib.suppress(StateError):
                store.fold(step, TerminalsEnded())
        store.emit(
            RunStopped(
                reason=reason,
                resumable=store.owns_state_file and can_resume(store.state),
                max_tokens=max_tokens,
                cleaned_up=cleaned_up,
                head=head_commit(self.settings.workspace.tree),
            )
        )
        return reason

    def _end_terminals(self) -> bool:
        """End the terminals; whether their server says that they have ended."""
        self.stopped_agents.go_on()
        try:
            end_strays(self.server.backend(), self.store)
            ended = end_terminals_of(self.server.backend(), self.store.state)
        except QuintetError:
            ended = False
        if not ended:
            self.store.warn("some terminals may live on: their server did not say that it has ended them")
        elif self.settings.is_sandboxed:
            remove_masks(self.settings.workspace.tree, private_git_folder(self.store.state.run_id))
        return ended
