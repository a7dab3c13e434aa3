"""The driver: starts or resumes a run, carries out its steps, and leaves a state that the next start can use."""

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from quintet import command
from quintet.api.client import ApiClient
from quintet.config import Settings
from quintet.errors import (
    AgentError,
    ApiError,
    MaybeDone,
    NoResponse,
    PassingFault,
    QuintetError,
    Refused,
    ResponseTimeout,
    StateError,
    TerminalGone,
    TokensUsedUp,
    TurnFailed,
)
from quintet.loop import journal
from quintet.loop.decide import flow, gate
from quintet.loop.decide.flow import (
    Arrived,
    Ask,
    Dispatched,
    Finished,
    NoReply,
    Outcome,
    Replaced,
    Replied,
    Step,
    Verified,
    Verify,
)
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.state import State, Status, has_all_terminals
from quintet.loop.decide.task import Task, given_task, saved_task
from quintet.loop.record.lock import directory_lock, sign_again
from quintet.loop.record.orphans import is_folder_name
from quintet.loop.record.responses import EXCERPT, LONGEST_REPLY, Responses, blocks, excerpt
from quintet.loop.record.signals import Interrupted, Signals
from quintet.loop.record.store import Books, Listener
from quintet.loop.run.clock import Clock, RealClock
from quintet.loop.run.postprocess import dirty_paths, post_process, start_commit, uncommitted
from quintet.loop.run.recovery import Recovery
from quintet.loop.run.resume import (
    Found,
    can_resume,
    check_task,
    find_saved,
    leave_behind,
    new_run_id,
    without_terminals,
)
from quintet.loop.run.terminals import REACH_SECONDS, Terminals, end_session, exit_terminals
from quintet.loop.run.tokens import Ledger
from quintet.loop.run.turn import Handoff, Patience, Reply, Request
from quintet.prose import plural
from quintet.roles import ROLES, Role

Connect = Callable[[str, Sequence[str]], ApiClient]
"""from an address (empty: bring your own server) and the names of the sessions that are there to a client"""
EXIT_CODES: Final = {Status.PASS: 0, Status.FAIL: 1, Status.RUNNING: 1}
TOKENS_USED_UP: Final = 3
"""the exit code of a run that has reached its limit of tokens"""


@dataclass
class Driver:
    """One run of the loop in one directory."""

    settings: Settings
    connect: Connect
    listeners: Sequence[Listener] = ()
    clock: Clock = RealClock()
    named: str = ""
    """the task that the command line names, as one types it; where it names none, an unfinished run goes on"""

    def __post_init__(self) -> None:
        self.signals = Signals()
        self.books = Books(self.settings, self.signals, self.listeners)
        self.api: ApiClient | None = None
        self._others = itertools.cycle(ROLES)
        self._ledger = Ledger(self.settings, self.books.warn)
        self._recovery = Recovery(self.settings, self.clock, self.emit, self._put_back)

    def run(self) -> int:
        """Carry the task to its end; the exit code says which."""
        with directory_lock(self.settings.wd), self.signals:
            try:
                return self._run()
            except Interrupted as interrupt:
                self._stop(f"interrupted by {interrupt}")
                return interrupt.exit_code
            except QuintetError as error:
                if not self.state.run_id:
                    raise
                used_up = isinstance(error, TokensUsedUp)
                self._stop(str(error), max_tokens=self.settings.max_tokens if used_up else 0)
                return TOKENS_USED_UP if used_up else 1
            finally:
                self.signals.last_words()
                self.books.notifier.flush()
                if self.api:
                    self.api.close()

    def emit(self, event: journal.Event) -> None:
        """Tell of something that happened."""
        self.books.emit(event)

    @property
    def state(self) -> State:
        return self.books.state

    def _run(self) -> int:
        found = find_saved(self.settings, self.books.warn)
        if found.resumable:
            check_task(found.resumable, self.settings, self.named)
        task = self._resume(found.resumable) if found.resumable else self._start(found)
        while not isinstance(step := flow.next_step(self.state, self.settings), Finished):
            self._carry_out(step, task)
        self._finish(step)
        return EXIT_CODES[step.status]

    # -- beginning

    def _start(self, found: Found) -> Task:
        settings = self.settings
        task = given_task(settings)
        run_id = new_run_id()
        blank = State(
            api=settings.api,
            provider=settings.provider,
            wd=str(settings.wd),
            prompt=settings.prompt,
            run_id=run_id,
            start_commit=start_commit(settings.wd),
        )
        state = flow.first_state(blank, settings)
        self._open(state, settings.api, found.earlier)
        state = replace(state, session_name=self._session_name(run_id))
        told = journal.RunStarted(run_id=run_id, wd=state.wd, start_agent=settings.start_agent)
        more = {"start_commit": state.start_commit, "dirty": dirty_paths(settings), "session": state.session_name}
        more["task_file"] = settings.prompt_file
        self.emit(told.model_copy(update=more))
        if settings.post_git_commit and (dirty := uncommitted(settings)):
            number = plural(len(dirty), "uncommitted change")
            self.books.warn(f"the work tree has {number}, which will be in the commit after a PASS")
        leave_behind(found, settings, self.handoff.api, self.emit)
        self.books.save(self.terminals.init_new_run(state, self.books.write_partial))
        return task

    def _resume(self, saved: State) -> Task:
        settings = self.settings
        saved = replace(
            saved,
            api=settings.api or saved.api,
            # a state that another tool has written knows no run id, and a damaged one may have lost its prompt
            run_id=saved.run_id if is_folder_name(saved.run_id) else new_run_id(),
            prompt=saved.prompt if saved.prompt.strip() else settings.prompt,
        )
        task = saved_task(saved.prompt, settings)
        self.books.ours = True
        self._open(saved, saved.api, [saved])
        step = flow.next_step(saved, settings)
        self.emit(journal.RunResumed(run_id=saved.run_id, step=getattr(step, "key", "")))
        if settings.prompt.strip() and settings.prompt != saved.prompt:
            own = "the prompt differs from that of the saved run, which goes on with its own"
            self.books.warn(f"{own}; RESUME=0 begins a new run")
        self._find_terminals(step)
        self.books.save(replace(self.state, last_error=""))
        return task

    def _find_terminals(self, step: Step) -> None:
        """Give the saved run terminals that are there: its own, or new ones where they were ended or lost."""
        if has_all_terminals(self.state):
            if lost := self.terminals.verify_resume_terminals(self.state):
                self._replace(step, lost)
            return
        end_session(self.handoff.api, self.state)
        fresh = replace(without_terminals(self.state), session_name=self._session_name(self.state.run_id))
        fresh = self.terminals.init_new_run(fresh, self.books.write_partial)
        self._fold(step, Replaced(fresh.terminals, fresh.session_name))

    def _session_name(self, run_id: str) -> str:
        """A name of our own choice where the server is ours; another one each time, since the old may linger."""
        return f"{run_id}-{secrets.token_hex(2)}" if self.handoff.api.own else ""

    def _open(self, state: State, api: str, earlier: Sequence[State]) -> None:
        """Open the run's folder and its journal, and connect to the server with the sessions of earlier states."""
        self.responses = Responses(self.settings.wd, state.run_id)
        self.responses.ensure_response_dir()
        self.books.open_journal(self.responses.archive)
        self.books.state = state
        self.api = self.connect(api, [one.session_name for one in earlier if one.session_name])
        patience = Patience(self.clock, REACH_SECONDS)
        while True:
            try:
                self.api.health()
                break
            except PassingFault as fault:
                patience.wait(fault)
        self.handoff = Handoff(self.api, self.responses, self.settings, self.clock, self._heard, self._look_around)
        self.terminals = Terminals(self.api, self.settings, self.clock, self.emit)

    # -- the loop

    def _carry_out(self, step: Step, task: Task) -> None:
        if isinstance(step, Verify):
            self._verify(step)
        elif isinstance(step, Ask):
            try:
                self._take(step, self.send_and_wait(step, task))
            except (NoResponse, ResponseTimeout):
                if not step.again:
                    raise
                tokens = self._spend(step)
                self.emit(journal.ReplyMissed.model_validate({"step": step.key, "role": step.role.name, **tokens}))
                self._fold(step, NoReply())
            except TurnFailed as failed:
                self._ledger.note(self.handoff.api, self.state.terminals[step.role.name].id)
                self._recovery.wait_out(step, failed)
                self._fold(step, flow.Failed())
            except (AgentError, TerminalGone, Refused) as error:
                self._recover(step, error)

    def _recover(self, step: Ask, error: QuintetError) -> None:
        """Replace the step's terminal where it is lost, so that the step is done again; else the error stands."""
        lost = self.terminals.find_lost(self.state) if self.terminals.recovers else {}
        if step.role not in lost:
            raise error
        self._recovery.check_replaceable(step, error)
        self._replace(step, lost)

    def _replace(self, step: Step, lost: Mapping[Role, str]) -> None:
        def save(partial: State) -> None:
            self._fold(step, Replaced(partial.terminals, partial.session_name))

        save(self.terminals.replace_lost(self.state, lost, self._session_name(self.state.run_id), save))

    def _verify(self, step: Verify) -> None:
        """Let the user's command have the last word, and keep what it says."""
        self.books.note(f"the tester's PASS is verified with `{step.command}`")
        outcome = command.run(
            step.command, self.settings.wd, self.settings.response_timeout, shield=self.signals.deferred
        )
        with self.signals.deferred():
            number = self.state.sequence + 1
            kept = self.responses.keep_output(number, step.command, outcome.exit_code, outcome.output)
            self.books.state = replace(self.state, sequence=number)
            self._fold(step, Verified(outcome.exit_code, outcome.output, kept.name))

    def send_and_wait(self, step: Ask, task: Task) -> Reply:
        """Send the step's prompt, unless an earlier process has, and wait for the reply."""
        prompts = Prompts(self.settings, task, self.state)
        if self.state.dispatched != step.key:
            self._ledger.check(self.state.tokens_used, self.handoff.api)
            self._dispatch(step)
            arrived = self._send(step, prompts)
        else:
            arrived = self.state.arrived == step.key or self._arrived(step, prompts)
        lost = "" if arrived else str(self.responses.keep_prompt(self._name(step), prompts.build(step)))
        request = Request(
            terminal_id=self.state.terminals[step.role.name].id,
            role=step.role,
            reminder=prompts.build_reminder(step, lost),
            since=self.state.dispatched_at,
            send_again=None if arrived else partial(self._send_again, step, prompts),
            at_work=partial(self._fold, step, Arrived()),
        )
        return self.handoff.wait_for_response_file(request)

    def _arrived(self, step: Ask, prompts: Prompts) -> bool:
        """Whether a prompt that an earlier process was about to send has arrived; our own server knows."""
        if not self.handoff.api.own:
            return False
        terminal = self.handoff.api.get_terminal(self.state.terminals[step.role.name].id)
        if terminal.get("dispatch_id") == self._dispatch_id(step):
            return True
        self.books.note(f"the last prompt had not reached {step.role.label}; it is sent now")
        return self._send(step, prompts)

    def _dispatch_id(self, step: Ask) -> str:
        again = f"-{self.state.attempt}" if self.state.attempt else ""
        return f"{self.state.run_id}-{step.key}{again}"

    def _send(self, step: Ask, prompts: Prompts) -> bool:
        """Send the prompt; False where it may or may not have arrived."""
        prompt = prompts.build(step)
        name, terminal = self._name(step), self.state.terminals[step.role.name].id
        file = str(self.responses.keep_prompt(name, prompt).relative_to(self.responses.archive))
        told = {"step": step.key, "role": step.role.name, "round": step.round, "cycle": step.cycle, "file": file}
        told |= {"characters": len(prompt), "carried": prompts.carried(step)}
        self.emit(journal.PromptSent.model_validate(told))
        try:
            arrived = self.handoff.send(terminal, self._deliverable(prompt, name), self._dispatch_id(step))
        except MaybeDone:
            raise
        except ApiError:
            # it cannot have arrived, so the next start has to send it
            self.books.save(replace(self.state, dispatched="", dispatched_at=0))
            raise
        if arrived and not self.handoff.api.own:  # ours can be asked for it
            self._fold(step, Arrived())
        return arrived

    def _send_again(self, step: Ask, prompts: Prompts, seconds: float) -> None:
        """Send a prompt of unknown fate once more, to an agent that was not seen at work."""
        message = self._deliverable(prompts.build(step), self._name(step))
        terminal = self.state.terminals[step.role.name].id
        if self.handoff.send(terminal, message, self._dispatch_id(step), seconds):
            self._fold(step, Arrived())

    def _dispatch(self, step: Ask) -> None:
        """Clear the way and write down that the prompt is about to be sent."""
        self.responses.ensure_response_dir()
        number = self.state.sequence + 1
        with self.signals.deferred():
            stale = self.responses.clear_stale_response(step.role, number)
            if stale:
                self.books.save(replace(self.state, sequence=number))
            self._fold(step, Dispatched(self.responses.file_time()))
        if stale:
            self.books.warn(f"{step.role.label} had an old response file; it is kept as {stale.name}")

    def _name(self, step: Ask) -> str:
        """The name of the step's files in the archive."""
        return f"{self.state.sequence + 1:03d}-{step.role.output}"

    def _deliverable(self, message: str, name: str) -> str:
        """A message that the server can carry: where it is too long, one that names a private file with it."""
        if self.handoff.api.fits(message):
            return message
        path = self.responses.keep_prompt(name, message)
        return (
            f"Read the file {path} from its first line to its last. It is your prompt for this turn: do what it says."
        )

    def _take(self, step: Ask, reply: Reply) -> None:
        """Archive, fold, save, and only then remove: at no moment is a reply in no safe place."""
        tokens = self._spend(step)
        with self.signals.deferred():
            number = self.state.sequence + 1
            if reply.is_long:
                kept = self.responses.keep_whole(step.role, number)
            else:
                kept = self.responses.keep(step.role, number, reply.text)
            replied = self._read_kept(step, kept) if reply.is_long or len(reply.text) > LONGEST_REPLY else None
            replied = replied or Replied(reply.text)
            told = {"step": step.key, "role": step.role.name, "source": reply.source, "file": kept.name}
            self.emit(journal.ReplyTaken.model_validate(told | {"characters": len(replied.text), **tokens}))
            self.books.state = replace(self.state, sequence=number)
            self._fold(step, replied)
            if reply.source == "file":
                self.responses.drop(step.role)

    def _read_kept(self, step: Ask, path: Path) -> Replied:
        """A long reply as it is in the archive: an excerpt of its text, and the verdict by all of its lines."""
        with self.responses.kept(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= LONGEST_REPLY:
                return Replied(excerpt(file))
            self.books.warn(
                f"the reply of {step.role.label} has {size:,} bytes; all of it is kept as {path.name}, "
                f"its first and last {EXCERPT // 1000} kB travel on"
            )
            read = gate.read_review_verdict if step.role.reviews else gate.read_test_verdict
            return Replied(excerpt(file), gate.Whole(size, read(blocks(file))))

    def _spend(self, step: Ask) -> dict[str, object]:
        """Close the turn's account: what it has cost, for the journal and for the limit."""
        terminal, model = self.state.terminals[step.role.name], self.settings.agents[step.role.name].model
        tokens, cost = self._ledger.close(self.handoff.api, terminal, model)
        used = self.state.tokens_used + (tokens.total if tokens else 0)
        self.books.state = replace(self.state, tokens_used=used)
        return {"tokens": tokens, "cost": cost}

    def _fold(self, step: Step, outcome: Outcome) -> None:
        with self.signals.deferred():
            state, events = flow.apply(self.state, step, outcome, self.settings)
            self.books.save(state)
            for event in events:
                self.emit(event)

    def _heard(self, event: journal.Event) -> None:
        """What the wait tells; before a reminder the tokens are read, because it begins another turn."""
        if isinstance(event, journal.Reminded):
            self._ledger.note(self.handoff.api, self.state.terminals[event.role].id)
        self.emit(event)

    def _look_around(self) -> None:
        """With each look at the agent at work: put back what it may have deleted, and look at one of the others."""
        self._put_back()
        role = next(self._others)
        if self.handoff.api.own:
            self.handoff.look_at(role, self.state.terminals[role.name].id)

    def _put_back(self) -> None:
        """Agents may clean the work tree in the middle of their turn."""
        if not self.responses.ready:
            self.responses.ensure_response_dir()
        sign_again(self.settings.wd)
        if not self.settings.state_file.exists():
            self.books.save(self.state)

    # -- the end

    def _finish(self, step: Finished) -> None:
        number = self.responses.sweep(self.state.sequence)
        self.books.save(replace(self.state, final_status=step.status, sequence=number))
        if step.status is Status.PASS:
            post_process(replace(self.settings, prompt=self.state.prompt), self.books.note, self.books.warn)
        told = {"status": step.status, "round": self.state.current_round, **self._left()}
        self.emit(journal.RunFinished.model_validate(told))
        self._clean_up()

    def _left(self) -> dict[str, object]:
        """How the project and its terminals are left behind."""
        return {"cleaned_up": self.settings.cleanup_on_exit, "head": start_commit(self.settings.wd)}

    def _stop(self, reason: str, max_tokens: int = 0) -> None:
        """Leave a state that the next start goes on from."""
        self.signals.last_words()
        if not self.state.run_id:
            return
        try:
            if self.books.ours:
                self.books.save(replace(self.books.partial or self.state, last_error=reason))
        except StateError as error:
            reason = f"{reason}; {error}"
        self._clean_up()
        if self.books.ours and self.settings.cleanup_on_exit:
            self._forget_terminals()
        told = {"reason": reason, "resumable": self.books.ours and can_resume(self.state), "max_tokens": max_tokens}
        self.emit(journal.RunStopped.model_validate(told | self._left()))

    def _clean_up(self) -> None:
        if self.settings.cleanup_on_exit and self.api:
            ended = (end_session if self.api.own else exit_terminals)(self.api, self.state)
            if not ended:
                self.books.warn("some terminals may live on: their server did not say that it has ended them")

    def _forget_terminals(self) -> None:
        """What was ended is not resumed into: the next start gives the same step to new terminals."""
        with contextlib.suppress(StateError):
            self.books.save(without_terminals(self.state))
