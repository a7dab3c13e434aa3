"""The words of a pull request: what was asked, what changed, what the PASS rests on, and the verdicts."""

from typing import Final

from quintet.loop.decide.gate import read_review_verdict, read_test_verdict
from quintet.loop.decide.lint import EXPLORE_HEADER, sections_of
from quintet.loop.decide.state import State
from quintet.loop.decide.task import title_of
from quintet.roles import PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER

LONGEST_TITLE: Final = 72
_LONGEST_PART: Final = 12_000
"""characters of a part; hosts take about 65,000 in all"""


def title(state: State) -> str:
    """The title: the first line of the task."""
    return title_of(state.prompt)[:LONGEST_TITLE] or "Quintet: task passed"


def body(state: State, changed: str) -> str:
    """The text, in Markdown; `changed` is git's list of the changed files."""
    asked = sections_of(state.prompt).body(EXPLORE_HEADER).strip() or state.prompt.strip()
    verdicts = [
        f"- Review of the specification: {read_review_verdict(state.outputs[PEER_ANALYST.output]) or 'none'}",
        f"- Review of the code: {read_review_verdict(state.outputs[PEER_PROGRAMMER.output]) or 'none'}",
        f"- Test: {read_test_verdict(state.outputs[TESTER.output]) or 'none'} in round {state.current_round}",
    ]
    parts = {
        "What was asked": asked,
        "What changed": f"```text\n{_bounded(changed.strip())}\n```\n\n{state.outputs[PROGRAMMER.output].strip()}",
        "What the PASS rests on": _rests_on(state),
        "Verdicts": "\n".join(verdicts) + _open_notes(state),
        "The tester's report": state.outputs[TESTER.output].strip(),
    }
    return "\n\n".join(f"## {heading}\n\n{_bounded(text)}" for heading, text in parts.items()) + "\n"


def _rests_on(state: State) -> str:
    if not state.checked:
        return "The tester's word alone: no check was given that Quintet could run."
    return "\n".join(f"- `{name}` ended with exit code {code}, run by Quintet" for name, code in state.checked.items())


def _open_notes(state: State) -> str:
    return "\n\nThe last review did not approve. Its notes:\n\n" + state.open_notes.strip() if state.open_notes else ""


def _bounded(text: str) -> str:
    left_out = len(text) - _LONGEST_PART
    return text if left_out <= 0 else f"{text[:_LONGEST_PART]}\n[{left_out} more characters are in the run's report]"
