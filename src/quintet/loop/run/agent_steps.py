"""The steps that need agents: a turn of one of them, with what may be tried again where it fails."""

from dataclasses import dataclass

from quintet.api.backend import Backend
from quintet.config import Settings
from quintet.errors import AgentError, QuintetError, Refused, TerminalGone, TurnFailure
from quintet.loop.decide.steps import Ask, Retrying
from quintet.loop.decide.task import Task
from quintet.loop.record.store import RunStore
from quintet.loop.run.actions import ActionLedger
from quintet.loop.run.clock import Clock
from quintet.loop.run.guarding import TreeGuard
from quintet.loop.run.recovery import Recovery
from quintet.loop.run.terminals import Terminals
from quintet.loop.run.tokens import TokenLedger
from quintet.loop.run.turn import AgentTurn
from quintet.loop.run.waiting import ResponseWaiter


@dataclass(frozen=True)
class AgentSteps:
    """Carries out one step after the other; what goes wrong with an agent is tried again within limits."""

    settings: Settings
    task: Task
    store: RunStore
    terminals: Terminals
    waiter: ResponseWaiter
    recovery: Recovery
    guard: TreeGuard

    @classmethod
    def over(
        cls, backend: Backend, settings: Settings, clock: Clock, task: Task, store: RunStore, *, guard: TreeGuard
    ) -> "AgentSteps":
        """Over a server."""
        waiter = ResponseWaiter(backend, store, settings, clock, TokenLedger(settings, store.warn), ActionLedger(clock))
        terminals = Terminals(backend, settings, clock, store)
        return cls(settings, task, store, terminals, waiter, Recovery(settings, clock, store), guard)

    def ask(self, step: Ask) -> None:
        """Let the step's agent take its turn, or get to where the step is tried again."""
        try:
            AgentTurn(step, self.settings, self.task, self.store, self.waiter, self.guard).run()
        except TurnFailure as failed:
            self.waiter.note_turn(self.store.state.terminals[step.role.name].id)
            self.recovery.wait_out(step, failed)
            self.store.fold(step, Retrying())
        except (AgentError, TerminalGone, Refused) as error:
            self._replace_lost(step, error)

    def _replace_lost(self, step: Ask, error: QuintetError) -> None:
        """Replace the step's terminal where it is lost, so that the step is done again; else the error stands."""
        lost = self.terminals.find_lost() if self.terminals.can_replace else {}
        if step.role not in lost:
            raise error
        self.recovery.count_replacement(step, error)
        self.terminals.replace_lost(step, lost)
