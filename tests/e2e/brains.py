"""A scripted model's part in the five-role loop: it answers a prompt by writing the file it is asked for."""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.exchange import Reply, Request

INSTRUCTION = "RESPONSE FILE INSTRUCTION"
HEREDOC = re.compile(r"cat > (?P<path>.+?) <<'")
MARKER = "SCRIPTED_REPLY_ENDS_HERE"

ANALYST_SUMMARY = """\
ANALYST_SUMMARY:
Artifact review per file: the proposal, the design and the tasks were read and agree with each other.
P1-P4 traceability: each priority of the request has a task and a requirement.
Phased delivery coverage: one phase, all of it deliverable at once.
Downstream contract impact: none; no interface changes.
Explicit handoff: implement the open tasks in order, then run the project's tests.
"""

ANALYST_APPROVED = """\
REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- The artifacts were read, beginning with the proposal
- P1 traceability is complete
- The downstream contract is unchanged
- The handoff is actionable
"""

PROGRAMMER_SUMMARY = """\
PROGRAMMER_SUMMARY:
Files changed: answer.txt
Behavior implemented: answer.txt holds the answer that was asked for.
Validation: the project's tests were run and pass.
Known limitations: none.
"""

PROGRAMMER_APPROVED = """\
REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- The implementation files match the request
- A pytest run passed
- The regression risk is low
- All issues of the last review are fixed
"""

TEST_FAIL = """\
RESULT: FAIL
EVIDENCE:
- ran: cat answer.txt
- expected: 42, seen: 41
"""

TEST_PASS = """\
RESULT: PASS
EVIDENCE:
- ran: cat answer.txt
- expected: 42, seen: 42
"""


@dataclass(frozen=True)
class Answer:
    """One reply to one prompt, and the shell commands that come before it."""

    text: str
    before: tuple[str, ...] = ()
    delay: float = 0.0
    """Seconds that the model takes for each of its steps."""


Script = Mapping[str, Sequence[Answer]]


def response_path(prompt: str) -> Path | None:
    """The file that a prompt asks for: the last one named, since a prompt may quote another."""
    asked = list(HEREDOC.finditer(prompt))
    return Path(shlex.split(asked[-1]["path"])[0]) if INSTRUCTION in prompt and asked else None


def write_command(path: Path, text: str) -> str:
    body = text if text.endswith("\n") else f"{text}\n"
    return f"cat > {shlex.quote(str(path))} <<'{MARKER}'\n{body}{MARKER}"


@dataclass
class RoleBrain:
    """The nth prompt for a file gets its nth answer, and the last one repeats.

    A brain that is shared by all terminals: what it knows of a turn is what the request itself shows.
    """

    script: Script
    asked: Counter[str] = field(default_factory=Counter)
    """Prompts so far, by the name of the file that they ask for."""
    _current: dict[tuple[str, tuple[str, ...]], Answer] = field(default_factory=dict)

    def __call__(self, request: Request) -> Reply:
        path = response_path(request.prompt)
        if path is None:
            return Reply.say("Understood.")
        answer = self._answer(request, path.name)
        steps = [*answer.before, write_command(path, answer.text)]
        done = len(request.results)
        if done < len(steps):
            return Reply.run(steps[done], delay=answer.delay)
        return Reply.say(f"{path.name} is written.", delay=answer.delay)

    def forget_turns(self) -> None:
        """Count a turn that begins once more: one killed too early to keep its prompt looks the same again."""
        self._current.clear()

    def _answer(self, request: Request, name: str) -> Answer:
        # A turn comes back after each of its commands, and a failed request comes again.
        turn = (request.conversation, request.prompts)
        answer = self._current.get(turn)
        if answer is None:
            answers = self.script[name]
            answer = answers[min(self.asked[name], len(answers) - 1)]
            self.asked[name] += 1
            self._current[turn] = answer
        return answer
