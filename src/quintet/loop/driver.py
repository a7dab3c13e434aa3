"""The driver: starts or resumes a run, carries out its steps, and leaves a state that the next start can use."""

import re
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from quintet.api.client import ApiClient
from quintet.config import Settings
from quintet.errors import (
    ApiError,
    MaybeDone,
    NoResponse,
    PassingFault,
    QuintetError,
    ResponseTimeout,
    RunError,
    StateError,
)
from quintet.loop import command, flow, journal
from quintet.loop.clock import Clock, RealClock
from quintet.loop.flow import Ask, Dispatched, Finished, NoReply, Outcome, Replied, Step, Verified, Verify
from quintet.loop.handoff import Handoff, Patience, Reply, Request
from quintet.loop.lock import directory_lock, sign
from quintet.loop.notify import Notifier
from quintet.loop.postprocess import post_process, start_commit, uncommitted
from quintet.loop.prompts import Prompts
from quintet.loop.responses import TMP, Responses
from quintet.loop.signals import Interrupted, Signals
from quintet.loop.state import State, Status, load_state, put_aside, save_state
from quintet.loop.task import Task, parse_task
from quintet.loop.terminals import REACH_SECONDS, Terminals, exit_terminals

Connect = Callable[[str, State], ApiClient]
"""from an address (empty: bring your own server) and the run's state to a client"""
Listener = Callable[[journal.Event], None]
EXIT_CODES: Final = {Status.PASS: 0, Status.FAIL: 1, Status.RUNNING: 1}


@dataclass
class Driver:
    """One run of the loop in one directory."""

    settings: Settings
    connect: Connect
    listeners: Sequence[Listener] = ()
    clock: Clock = RealClock()

    def __post_init__(self) -> None:
        self.state = State()
        self.signals = Signals()
        self.api: ApiClient | None = None
        self._journal: journal.Journal | None = None
        self._early: list[journal.Event] = []
        self._old: State | None = None
        """the earlier run whose state is in the way of a new one"""
        self._ours = False
        """whether the state file is this run's"""
        self._notifier = Notifier(self.settings, lambda text: self.emit(journal.Warned(text=text)))

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
                self._stop(str(error))
                return 1
            finally:
                self.signals.last_words()
                self._notifier.flush()
                if self.api:
                    self.api.close()

    def emit(self, event: journal.Event) -> None:
        """Write an event to the journal and tell those who watch. A journal that cannot be written stops nothing."""
        if self._journal is None:
            self._early.append(event)
            return
        try:
            event = self._journal.write(event)
        except OSError as error:
            event = event.model_copy(update={"at": f"(journal: {error.strerror})"})
        for listener in self.listeners:
            listener(event)
        self._notifier(event)

    def _run(self) -> int:
        saved = self._resumable()
        task = self._resume(saved) if saved else self._start()
        while not isinstance(step := flow.next_step(self.state, self.settings), Finished):
            self._carry_out(step, task)
        self._finish(step)
        return EXIT_CODES[step.status]

    # -- beginning

    def _resumable(self) -> State | None:
        """The saved run to go on with, or None for a new one; a state that cannot be read is put aside."""
        path, wish = self.settings.state_file, self.settings.resume
        try:
            saved = load_state(path, self.settings.provider)
            reason = "there is no saved run" if saved is None else _why_not(saved)
        except StateError as error:
            saved, reason = None, f"{error}; it is kept as {put_aside(path, 'unreadable').name}"
            self.emit(journal.Warned(text=reason))
        if wish and reason:
            raise RunError(f"cannot resume: {reason}")
        if saved and (reason or wish is False):
            self._old = saved
            return None
        return saved

    def _archive_state(self, saved: State) -> None:
        """Keep an old state with its run, also where the archive is on another file system."""
        path = self.settings.state_file
        folder = self.settings.wd / TMP / (saved.run_id if _is_folder_name(saved.run_id) else "earlier-runs")
        target, number = folder / path.name, 1
        while target.exists():
            number += 1
            target = folder / f"{path.stem}-{number}{path.suffix}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
        except OSError as error:
            raise StateError(f"{path}: cannot be moved to the archive ({error.strerror})") from None
        if saved.final_status is Status.RUNNING and _complete(saved):
            self.emit(journal.Warned(text=f"the unfinished run {saved.run_id} is left behind; its state is {target}"))

    def _start(self) -> Task:
        settings = self.settings
        if not settings.prompt.strip():
            raise RunError("there is no task: name a task file with PROMPT_FILE or --prompt-file")
        task = parse_task(settings.prompt, settings.prompt_file or "the prompt")
        run_id = _new_run_id()
        blank = State(
            api=settings.api,
            provider=settings.provider,
            wd=str(settings.wd),
            prompt=settings.prompt,
            run_id=run_id,
            start_commit=start_commit(settings.wd),
        )
        state = flow.first_state(blank, settings)
        terminals = self._open(state, settings.api)
        self.emit(
            journal.RunStarted(
                run_id=run_id, wd=state.wd, start_agent=settings.start_agent, start_commit=state.start_commit
            )
        )
        if settings.post_git_commit and (dirty := uncommitted(settings)):
            text = f"the work tree has {len(dirty)} uncommitted changes; they will be in the commit after a PASS"
            self.emit(journal.Warned(text=text))
        if self._old:
            self._archive_state(self._old)
            if self._old.final_status is Status.RUNNING and not _complete(self._old) and self._old.api == settings.api:
                exit_terminals(terminals.api, self._old)
        # before the last terminal is ready a saved state names fewer than five, and nobody resumes into it
        self._save(terminals.init_new_run(state, lambda partial: None if _complete(partial) else self._write(partial)))
        return task

    def _resume(self, saved: State) -> Task:
        settings = self.settings
        saved = replace(
            saved,
            api=settings.api or saved.api,
            # a state that another tool has written knows no run id, and a damaged one may have lost its prompt
            run_id=saved.run_id if _is_folder_name(saved.run_id) else _new_run_id(),
            prompt=saved.prompt if saved.prompt.strip() else settings.prompt,
        )
        task = parse_task(saved.prompt, "the saved run's prompt")
        self._ours = True
        terminals = self._open(saved, saved.api)
        step = flow.next_step(saved, settings)
        self.emit(journal.RunResumed(run_id=saved.run_id, step=getattr(step, "key", "")))
        if settings.prompt.strip() and settings.prompt != saved.prompt:
            self.emit(journal.Warned(text="the prompt differs from that of the saved run, which goes on with its own"))
        terminals.verify_resume_terminals(saved)
        self._save(replace(saved, last_error=""))
        return task

    def _open(self, state: State, api: str) -> Terminals:
        """Open the run's folder and its journal, and connect to the server."""
        self.responses = Responses(self.settings.wd, state.run_id)
        self.responses.ensure_response_dir()
        self._journal = journal.Journal(self.responses.archive / "journal.jsonl")
        early, self._early = self._early, []
        for event in early:
            self.emit(event)
        self.state = state
        self.api = self.connect(api, state)
        patience = Patience(self.clock, REACH_SECONDS)
        while True:
            try:
                self.api.health()
                break
            except PassingFault as fault:
                patience.wait(fault)
        self.handoff = Handoff(self.api, self.responses, self.settings, self.clock, self.emit, self._put_back)
        return Terminals(self.api, self.settings, self.clock, self.emit)

    # -- the loop

    def _carry_out(self, step: Step, task: Task) -> None:
        if isinstance(step, Verify):
            outcome = command.run(step.command, self.settings.wd, self.settings.response_timeout)
            self._fold(step, Verified(outcome.exit_code, outcome.output))
        elif isinstance(step, Ask):
            try:
                reply = self.send_and_wait(step, task)
            except (NoResponse, ResponseTimeout):
                if not step.again:
                    raise
                self._fold(step, NoReply())
            else:
                self._take(step, reply)

    def send_and_wait(self, step: Ask, task: Task) -> Reply:
        """Send the step's prompt, unless an earlier process has, and wait for the reply."""
        prompts = Prompts(self.settings, task, self.state)
        prompt = prompts.build(step)
        arrived = False
        if self.state.dispatched != step.key:
            self._dispatch(step)
            arrived = self._send(step, prompt)
        reminder = prompts.build_reminder(step, "" if arrived else prompt)
        request = Request(
            terminal_id=self.state.terminals[step.role.name].id,
            role=step.role,
            reminder=self._deliverable(reminder, f"{self._name(step)}-reminder"),
            since=self.state.dispatched_at,
            uncertain=not arrived,
        )
        return self.handoff.wait_for_response_file(request)

    def _send(self, step: Ask, prompt: str) -> bool:
        """Send the prompt; False where it may or may not have arrived."""
        name, terminal = self._name(step), self.state.terminals[step.role.name].id
        file = self._keep_prompt(prompt, name)
        told = {"step": step.key, "role": step.role.name, "round": step.round, "cycle": step.cycle, "file": file}
        self.emit(journal.PromptSent.model_validate(told | {"characters": len(prompt)}))
        try:
            return self.handoff.send(terminal, self._deliverable(prompt, name), f"{self.state.run_id}-{step.key}")
        except MaybeDone:
            raise
        except ApiError:
            # it cannot have arrived, so the next start has to send it
            self._save(replace(self.state, dispatched="", dispatched_at=0))
            raise

    def _dispatch(self, step: Ask) -> None:
        """Clear the way and write down that the prompt is about to be sent."""
        self.responses.ensure_response_dir()
        number = self.state.sequence + 1
        with self.signals.deferred():
            stale = self.responses.clear_stale_response(step.role, number)
            if stale:
                self._save(replace(self.state, sequence=number))
            self._fold(step, Dispatched(self.responses.file_time()))
        if stale:
            self.emit(journal.Warned(text=f"{step.role} had an old response file; it is kept as {stale.name}"))

    def _name(self, step: Ask) -> str:
        """The name of the step's files in the archive."""
        return f"{self.state.sequence + 1:03d}-{step.role.output}"

    def _keep_prompt(self, prompt: str, name: str) -> str:
        path = self.responses.archive / "prompts" / f"{name}.md"
        self.responses.write(path, prompt)
        return str(path.relative_to(self.responses.archive))

    def _deliverable(self, message: str, name: str) -> str:
        """A message that the server can carry: where it is too long, one that names a private file with it."""
        if self.handoff.api.fits(message):
            return message
        path = self.responses.archive / self._keep_prompt(message, name)
        return (
            f"Read the file {path} from its first line to its last. It is your prompt for this turn: do what it says."
        )

    def _take(self, step: Ask, reply: Reply) -> None:
        """Archive, fold, save, and only then remove: at no moment is a reply in no safe place."""
        with self.signals.deferred():
            number = self.state.sequence + 1
            kept = self.responses.keep(step.role, number, reply.text)
            self.emit(
                journal.ReplyTaken(
                    step=step.key,
                    role=step.role.name,
                    characters=len(reply.text),
                    source=reply.source,
                    file=kept.name,
                )
            )
            self.state = replace(self.state, sequence=number)
            self._fold(step, Replied(reply.text))
            if reply.source == "file":
                self.responses.drop(step.role)

    def _fold(self, step: Step, outcome: Outcome) -> None:
        with self.signals.deferred():
            state, events = flow.apply(self.state, step, outcome, self.settings)
            self._save(state)
            for event in events:
                self.emit(event)

    def _save(self, state: State) -> None:
        self.state = state
        self._write(state)

    def _write(self, state: State) -> None:
        with self.signals.deferred():
            save_state(state, self.settings.state_file)
            self._ours = True

    def _put_back(self) -> None:
        """Agents may clean the work tree in the middle of their turn."""
        if not self.responses.ready:
            self.responses.ensure_response_dir()
            sign(self.settings.wd)
        if not self.settings.state_file.exists():
            self._save(self.state)

    # -- the end

    def _finish(self, step: Finished) -> None:
        self._save(replace(self.state, final_status=step.status))
        if step.status is Status.PASS:
            post_process(
                self.settings,
                lambda text: self.emit(journal.Noted(text=text)),
                lambda text: self.emit(journal.Warned(text=text)),
            )
        self.emit(journal.RunFinished(status=step.status, round=self.state.current_round))
        self._clean_up()

    def _stop(self, reason: str) -> None:
        """Leave a state that the next start goes on from."""
        self.signals.last_words()
        if not self.state.run_id:
            return
        try:
            if self._ours:
                self._save(replace(self.state, last_error=reason))
        except StateError as error:
            reason = f"{reason}; {error}"
        self.emit(journal.RunStopped(reason=reason))
        self._clean_up()

    def _clean_up(self) -> None:
        if self.settings.cleanup_on_exit and self.api:
            exit_terminals(self.api, self.state)


def _why_not(saved: State) -> str:
    """Why a saved run cannot be gone on with; nothing where it can."""
    if saved.final_status is not Status.RUNNING:
        return f"the saved run has ended with {saved.final_status}"
    return "" if _complete(saved) else "the saved run was interrupted before its terminals were there"


def _complete(saved: State) -> bool:
    return all(terminal.id for terminal in saved.terminals.values())


def _new_run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _is_folder_name(run_id: str) -> bool:
    """Whether a run id from a file names a folder below `.tmp/`, and nothing else."""
    return bool(re.fullmatch(r"\w[\w.-]{0,100}", run_id))
