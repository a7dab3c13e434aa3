"""The prompts: what each agent is told, built from the task, the settings, the state and what the tests have lost."""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from quintet.changed_tests import TestLosses
from quintet.config import Settings
from quintet.layout import response_path_for
from quintet.loop import journal
from quintet.loop.decide import condense
from quintet.loop.decide.outputs import size_of
from quintet.loop.decide.prompts.own import ACTIONS, AGAIN, CHANGES, REMINDER, RESPONSE_FILE
from quintet.loop.decide.prompts.texts import render
from quintet.loop.decide.state import Again, State
from quintet.loop.decide.steps import Ask
from quintet.loop.decide.task import Task
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Role

BACK_REFERENCE: Final = "(Same as initial turn -- refer to your conversation history.)"
NOTHING_YET: Final = "None yet."
OPENSPEC_SKILLS: Final = {"explore": "openspec-explore", "ff": "openspec-ff-change", "apply": "openspec-apply-change"}
"""the workflows of OpenSpec that the prompts name, each with its skill"""
NOTE: Final = "*** NOTE FROM A PERSON ***"
SENT_BACK: Final = "*** SENT BACK BY A PERSON: this counts above any review ***"


class Note(Protocol):
    """What a person says, and who it is."""

    @property
    def text(self) -> str: ...

    @property
    def by(self) -> str: ...


def with_notes(prompt: str, notes: Sequence[Note]) -> str:
    """A prompt with the notes of people before it, each under a heading of its own."""
    return "".join(f"{NOTE}\n{note.text.strip()}\n(from {note.by})\n\n" for note in notes) + prompt


@dataclass(frozen=True)
class Prompts:
    """The builders of all prompts. Equal state, equal text: a resumed run sends what it would have sent."""

    settings: Settings
    task: Task
    state: State
    lost_tests: TestLosses = TestLosses()
    """what the work tree has lost of its tests"""

    def build(self, step: Ask) -> str:
        """The prompt of a step."""
        if step.again:
            return self.build_again_prompt(step)
        builders = {
            ANALYST: self.build_analyst_prompt,
            PEER_ANALYST: self.build_analyst_review_prompt,
            PROGRAMMER: self.build_programmer_prompt,
            PEER_PROGRAMMER: self.build_programmer_review_prompt,
            TESTER: self.build_tester_prompt,
        }
        is_judged = self.state.rejection and step.role is not TESTER  # who tests follows the scenario alone
        return (f"{SENT_BACK}\n{self.state.rejection}\n\n" if is_judged else "") + builders[step.role](step)

    def carried(self, step: Ask) -> tuple[journal.Carried, ...]:
        """What the step's prompt carries on that was, or could have been, shortened: its size in whole and as sent."""
        state, role, sizes = self.state, step.role, self.state.whole_sizes
        parts: list[tuple[str, str, int | None]] = []
        if step.again:
            return ()
        if role is not TESTER:
            parts.append((journal.EXPLORE, self.explore_block_for(step), size_of(self.task.explore_summary)))
        if role is PROGRAMMER and step.round == 1:
            whole = size_of(state.outputs[ANALYST.output])
            parts.append((journal.ANALYST_HANDOFF, self._analyst_handoff(step), whole))
        if role is TESTER:
            whole = size_of(state.outputs[PROGRAMMER.output])
            parts.append((journal.PROGRAMMER_HANDOFF, self._programmer_handoff(), whole))
        if role is ANALYST or (role in (PROGRAMMER, PEER_PROGRAMMER) and step.round > 1):
            parts.append((journal.TEST_EVIDENCE, state.feedback, sizes.get(TESTER.output)))
        if role is PROGRAMMER and step.round > 1:
            parts.append((journal.PREVIOUS_CHANGES, state.programmer_context_for_retry, sizes.get(PROGRAMMER.output)))
        if (role is PROGRAMMER and step.cycle == 1) or role is TESTER:
            reviewer = PEER_ANALYST if role is PROGRAMMER else PEER_PROGRAMMER
            parts.append((journal.OPEN_NOTES, state.open_notes, sizes.get(reviewer.output)))
        if role in (ANALYST, PROGRAMMER):
            notes = state.analyst_feedback if role is ANALYST else state.programmer_feedback
            reviewer = PEER_ANALYST if role is ANALYST else PEER_PROGRAMMER
            parts.append((journal.REVIEW_NOTES, notes, sizes.get(reviewer.output)))
        return tuple(_carried(what, text, whole) for what, text, whole in parts if text)

    def build_analyst_prompt(self, step: Ask) -> str:
        return self._render(
            ANALYST.output,
            step,
            explore=self.explore_block_for(step),
            retry="yes" if step.round > 1 else "",
            tester_feedback=self.state.feedback or NOTHING_YET,
            peer_feedback=self.state.analyst_feedback or NOTHING_YET,
            undone=self._undone_of(ANALYST),
        )

    def build_analyst_review_prompt(self, step: Ask) -> str:
        return self._render(
            PEER_ANALYST.output,
            step,
            explore=self.explore_block_for(step),
            analyst_output=self.state.outputs[ANALYST.output],
            undone=self._undone_of(ANALYST),
        )

    def build_programmer_prompt(self, step: Ask) -> str:
        retry = step.round > 1
        first = step.cycle == 1
        return self._render(
            PROGRAMMER.output,
            step,
            explore=self.explore_block_for(step),
            retry="yes" if retry else "",
            analyst_handoff=self._analyst_handoff(step),
            test_feedback=self.state.feedback or NOTHING_YET,
            previous_changes=self.state.programmer_context_for_retry if retry else "",
            open_notes=self.state.open_notes if first else "",
            peer_feedback=self.state.programmer_feedback or NOTHING_YET,
            undone=self._undone_of(PROGRAMMER),
            scenario=self.task.scenario_test,
            test_command=self.settings.project_test_cmd,
        )

    def build_programmer_review_prompt(self, step: Ask) -> str:
        return self._render(
            PEER_PROGRAMMER.output,
            step,
            explore=self.explore_block_for(step),
            programmer_output=self.state.outputs[PROGRAMMER.output],
            test_feedback=self.state.feedback if step.round > 1 else "",
            undone=self._undone_of(PROGRAMMER),
            lost_tests="\n".join(f"- {line}" for line in self.lost_tests.lines),
            test_command=self.settings.project_test_cmd,
        )

    def build_tester_prompt(self, step: Ask) -> str:
        return self._render(
            TESTER.output,
            step,
            scenario=self.task.scenario_test,
            programmer_handoff=self._programmer_handoff(),
            open_notes=self.state.open_notes,
        )

    def build_again_prompt(self, step: Ask) -> str:
        """What a role gets whose reply does not count."""
        if step.again is Again.VERDICT:
            return self._render(AGAIN, step)
        review = "yes" if step.role.reviews else ""
        if step.again is Again.CHANGES:
            return self._render(CHANGES, step, review=review, undone=self._undone_of(step.role))
        return self._render(ACTIONS, step, review=review)

    def build_reminder(self, step: Ask, prompt_file: str = "") -> str:
        """What an idle agent gets that wrote no response; it names the prompt's file where that may have got lost."""
        values = {"prompt_file": prompt_file, RESPONSE_FILE: self._response_file(step)}
        return render(REMINDER, values, self.settings.prompts_dir)

    def explore_block_for(self, step: Ask) -> str:
        """The explore summary: whole in a terminal's first prompt, afterwards a reference to it."""
        if self.settings.condense_explore_on_repeat and self._had_a_prompt(step):
            return BACK_REFERENCE
        return self.task.explore_summary

    def _analyst_handoff(self, step: Ask) -> str:
        if self.settings.condense_upstream_on_repeat and step.cycle > 1 and self._had_a_prompt(step):
            return BACK_REFERENCE
        return condense.condense_for_programmer(self.state.outputs[ANALYST.output], self.settings)

    def _programmer_handoff(self) -> str:
        return condense.condense_for_tester(self.state.outputs[PROGRAMMER.output], self.settings)

    def _undone_of(self, role: Role) -> str:
        """What was undone of a role's last turn."""
        return self.state.undone.get(role.name, "")

    def _had_a_prompt(self, step: Ask) -> bool:
        """Whether the step's terminal had an earlier prompt, which then held everything in full."""
        terminal = self.state.terminals[step.role.name].id
        return self.state.full_summary_sent.get(terminal, step.key) != step.key

    def _render(self, name: str, step: Ask, **values: str) -> str:
        limits = {
            "round": str(step.round),
            "max_rounds": str(self.settings.max_rounds),
            "cycle": str(step.cycle),
            "max_cycles": str(self.settings.max_review_cycles),
            "min_cycles": str(self.settings.min_review_cycles_before_approval),
        }
        values = limits | self._skills(step.role) | values | {RESPONSE_FILE: self._response_file(step)}
        return render(name, values, self.settings.prompts_dir)

    def _skills(self, role: Role) -> dict[str, str]:
        """How a role's agent is told to use OpenSpec: by a command where it knows some, else by a skill's name."""
        has_commands = self.settings.agents[role.name].has_commands
        return {
            f"{name}_skill": f"`/opsx:{name}`" if has_commands else f"the skill `{skill}`"
            for name, skill in OPENSPEC_SKILLS.items()
        }

    def _response_file(self, step: Ask) -> str:
        path = str(response_path_for(step.role, self.settings.workspace.tree))
        digest = hashlib.sha256(f"{self.state.run_id}\n{step.key}".encode("utf-8", "replace")).hexdigest()[:16]
        # a reply cannot contain a line that its author has never seen before this prompt
        marker = f"QUINTET_END_{digest.upper()}"
        values = {"path": path, "quoted_path": shlex.quote(path), "marker": marker}
        return render(RESPONSE_FILE, values, self.settings.prompts_dir)


def _carried(what: str, text: str, whole: int | None) -> journal.Carried:
    """The bytes of a text as it is sent; where nobody knows how long it was in whole, nothing was left out."""
    sent = size_of(text.strip("\n"))
    return journal.Carried(what=what, whole=sent if whole is None else whole, sent=sent)
