"""One turn of one agent: send it the prompt of a step, wait for the reply, and take it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quintet import changed_tests
from quintet.actions import TurnActions
from quintet.changed_tests import TestLosses
from quintet.config import Settings
from quintet.errors import ApiError, NoResponse, OutcomeUnknown, ResponseTimeout
from quintet.loop import journal
from quintet.loop.decide import gate
from quintet.loop.decide.prompts import Prompts, with_notes
from quintet.loop.decide.state import Again, State
from quintet.loop.decide.steps import Arrived, Ask, Dispatched, FileArchived, NoReply, NotSent, Replied
from quintet.loop.decide.task import Task
from quintet.loop.record.people import PersonNote
from quintet.loop.record.responses import EXCERPT, LONGEST_REPLY, blocks, excerpt
from quintet.loop.record.store import RunStore
from quintet.loop.run.guarding import TreeGuard
from quintet.loop.run.strays import end_strays
from quintet.loop.run.tokens import Spent
from quintet.loop.run.waiting import Prompt, Reply, Request, ResponseWaiter
from quintet.roles import PEER_PROGRAMMER


@dataclass(frozen=True)
class AgentTurn:
    """The turn of the agent that a step names. A step that an earlier process has begun goes on where it is."""

    step: Ask
    settings: Settings
    task: Task
    store: RunStore
    waiter: ResponseWaiter
    guard: TreeGuard

    def run(self) -> None:
        """Carry out the turn. A role that is asked once more may also give no reply."""
        begun = self.waiter.clock.now()
        try:
            reply = self.send_and_wait()
        except (NoResponse, ResponseTimeout):
            if not self.step.again:
                raise
            self._miss(self.waiter.clock.now() - begun)
        else:
            self.take(reply, self.waiter.clock.now() - begun)

    def send_and_wait(self) -> Reply:
        """Send the step's prompt, unless an earlier process has, and wait for the reply."""
        step, prompts = self.step, Prompts(self.settings, self.task, self._state, self._lost_tests())
        notes = self._notes()
        prompt = with_notes(prompts.build(step), notes)
        if self._state.dispatched != step.key:
            self.waiter.tokens.check(self._state, self.waiter.backend)
            if step.role.judges:
                end_strays(self.waiter.backend, self.store, but=step.role)
            self.guard.before(step)
            self._dispatch(notes)
            arrived = self._send(prompt, prompts, notes)
        else:
            self.guard.before(step)
            arrived = self._state.arrived == step.key or self._confirm_or_send(prompt, prompts, notes)
        kept = "" if arrived else str(self.store.responses.prompt_for(step.role, self._file_name, prompt))
        request = Request(
            step=step,
            terminal_id=self._terminal,
            reminder=prompts.build_reminder(step, kept),
            since=self._state.dispatched_at,
            unconfirmed=None if arrived else Prompt(self._deliverable(prompt), self._dispatch_id),
        )
        return self.waiter.wait_for_response_file(request)

    def _notes(self) -> list[PersonNote]:
        """The notes of people that belong to the step's prompt: those that it had, or that no prompt had so far."""
        step, sent = self.step, self._state.notes_sent
        is_new = self._state.dispatched != step.key
        # a new terminal gets the first prompt again, where the lost one had been asked once more
        had = (step.key, replace(step, again=Again.VERDICT).key)
        return [
            note
            for note in self.store.people.notes()
            if sent.get(note.id) in had or (is_new and note.id not in sent and note.role in ("", step.role.name))
        ]

    def _dispatch(self, notes: Sequence[PersonNote]) -> None:
        """Move an old response out of the way, and write down that the prompt is about to be sent."""
        responses, number = self.store.responses, self._state.sequence + 1
        responses.ensure_response_dir()
        with self.store.signals.deferred():
            stale = responses.clear_stale_response(self.step.role, number)
            if stale:
                self.store.fold(self.step, FileArchived(number))
            told = tuple(note.id for note in notes)
            self.store.fold(self.step, Dispatched(responses.file_time(self.step.role), told))
        if stale:
            self.store.warn(f"{self.step.role} had an old response file; it is kept as {stale.name}")

    def _confirm_or_send(self, prompt: str, prompts: Prompts, notes: Sequence[PersonNote]) -> bool:
        """Find out whether a prompt that an earlier process was about to send has arrived; if not, send it.

        False where the server cannot tell.
        """
        backend = self.waiter.backend
        if not backend.knows_dispatch_ids:
            return False
        if backend.get_terminal(self._terminal).dispatch_id == self._dispatch_id:
            return True
        self.store.note(f"the last prompt had not reached {self.step.role}; it is sent now")
        return self._send(prompt, prompts, notes)

    def _send(self, prompt: str, prompts: Prompts, notes: Sequence[PersonNote]) -> bool:
        """Send the prompt; False where it may or may not have arrived."""
        step, responses = self.step, self.store.responses
        file = responses.keep_prompt(self._file_name, prompt).relative_to(responses.archive)
        for note in notes:
            self.store.emit(journal.PersonNoted(role=step.role.name, by=note.by, text=note.text))
        if lost := prompts.lost_tests.lines:
            self.store.emit(journal.TestsLost(round=step.round, text=prompts.lost_tests.words, files=tuple(lost)))
        self.store.emit(
            journal.PromptSent(
                step=step.key,
                role=step.role.name,
                round=step.round,
                cycle=step.cycle,
                characters=len(prompt),
                file=str(file),
                carried=prompts.carried(step),
            )
        )
        try:
            arrived = self.waiter.send(self._terminal, self._deliverable(prompt), self._dispatch_id)
        except OutcomeUnknown:
            raise
        except ApiError:
            self.store.fold(step, NotSent())
            raise
        if arrived and not self.waiter.backend.knows_dispatch_ids:  # the others can be asked for it
            self.store.fold(step, Arrived())
        return arrived

    def _deliverable(self, prompt: str) -> str:
        """A message that the server can carry: where the prompt is too long, one that names a private file with it."""
        if self.waiter.backend.fits(prompt):
            return prompt
        path = self.store.responses.keep_prompt(self._file_name, prompt)
        return (
            f"Read the file {path} from its first line to its last. It is your prompt for this turn: do what it says."
        )

    def take(self, reply: Reply, seconds: float = 0.0) -> None:
        """Archive, fold, save, and only then remove: at no moment is a reply in no safe place."""
        step, responses, spent, actions = self.step, self.store.responses, self._spent(), self._actions()
        violation = self._look_at_changes()
        with self.store.signals.deferred():
            number = self._state.sequence + 1
            if reply.is_long:
                kept = responses.keep_whole(step.role, number)
            else:
                kept = responses.keep(step.role, number, reply.text)
            text, whole = reply.text, None
            if reply.is_long or len(reply.text) > LONGEST_REPLY:
                text, whole = self._read_kept(kept)
            self.store.emit(
                journal.ReplyTaken(
                    step=step.key,
                    role=step.role.name,
                    characters=len(text),
                    source=reply.source,
                    file=kept.name,
                    tokens=spent.tokens,
                    cost=spent.cost,
                    actions=actions,
                )
            )
            used = {"cost": spent.cost or 0.0, "seconds": seconds}
            self.store.fold(step, Replied(text, whole, number, spent.total, actions, violation, **used))
            self.guard.done(step)
            if reply.source == "file":
                self._drop(reply)

    def _look_at_changes(self) -> journal.GuardViolation | None:
        """What the role changed and may not change. First nothing is left running that could change more later."""
        end_strays(self.waiter.backend, self.store)
        return self.guard.after(self.step)

    def _drop(self, reply: Reply) -> None:
        """Remove the response file; where it is another one than was read, somebody has written to it since."""
        role, responses = self.step.role, self.store.responses
        found = responses.look(role, 0)
        if found and reply.seen and found != reply.seen and (kept := responses.put_aside(role, self._state.sequence)):
            told = f"the response file of {role} was changed after its reply was taken"
            self.store.warn(f"{told}; what it became is kept as {kept.name}")
        else:
            responses.drop(role)

    def _miss(self, seconds: float) -> None:
        step, spent, actions, violation = self.step, self._spent(), self._actions(), self._look_at_changes()
        self.store.emit(
            journal.ReplyMissed(
                step=step.key, role=step.role.name, tokens=spent.tokens, cost=spent.cost, actions=actions
            )
        )
        self.store.fold(step, NoReply(spent.total, violation, spent.cost or 0.0, seconds))
        self.guard.done(step)

    def _read_kept(self, path: Path) -> tuple[str, gate.Whole | None]:
        """A long reply as it is in the archive: an excerpt of its text, and the verdict by all of its lines."""
        role = self.step.role
        with self.store.responses.kept(path.name) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= LONGEST_REPLY:
                return excerpt(file), None
            self.store.warn(
                f"the reply of {role} has {size:,} bytes; all of it is kept as {path.name}, "
                f"its first and last {EXCERPT // 1000} kB travel on"
            )
            read = gate.read_review_verdict if role.reviews else gate.read_test_verdict
            return excerpt(file), gate.Whole(size, read(blocks(file)))

    def _spent(self) -> Spent:
        role = self.step.role.name
        return self.waiter.tokens.close(
            self.waiter.backend, self._state.terminals[role], self.settings.agents[role].model
        )

    def _actions(self) -> TurnActions | None:
        wait = self.step.role.judges and self.settings.require_actions
        return self.waiter.actions.close(self.waiter.backend, self._terminal, wait=wait)

    def _lost_tests(self) -> TestLosses:
        """What the work tree has lost of its tests, for the reviewer of the code."""
        reviews_code = self.step.role is PEER_PROGRAMMER and not self.step.again
        return (
            changed_tests.look(self.settings.workspace.tree, self._state.start_commit) if reviews_code else TestLosses()
        )

    @property
    def _state(self) -> State:
        return self.store.state

    @property
    def _terminal(self) -> str:
        return self._state.terminals[self.step.role.name].id

    @property
    def _dispatch_id(self) -> str:
        again = f"-{self._state.attempt}" if self._state.attempt else ""
        return f"{self._state.run_id}-{self.step.key}{again}"

    @property
    def _file_name(self) -> str:
        """The name of the step's files in the archive."""
        return f"{self._state.sequence + 1:03d}-{self.step.role.output}"
