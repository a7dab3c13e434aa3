"""What the demo's agents do. Their words are written here, but their work is real: files, commands, exit codes."""

from typing import Any, Final

from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER

CHANGE: Final = "openspec/changes/add-slugs"

PROPOSAL = """\
## Why

The project promises slugs and cannot make any: there is no slug.py.

## What Changes

- Add slug.py, which prints the slug of its argument

## Capabilities

### New Capabilities
- `slugs`: how a title becomes a slug

## Impact

One new program and its test; nothing else changes.
"""

SPEC = """\
## ADDED Requirements

### Requirement: Titles become slugs
The program SHALL print a title in lower case, with its words joined by single hyphens.

#### Scenario: A plain title
- **WHEN** slug.py is called with "Hello World"
- **THEN** it prints hello-world

#### Scenario: Punctuation and accents
- **WHEN** a title has punctuation, extra blanks or accents
- **THEN** they leave no trace in the slug
"""

TASKS = """\
## 1. The program

- [ ] 1.1 Write slug.py with a function slugify
- [ ] 1.2 Write test_slug.py
"""

FIRST = '''\
"""Print the slug of a title."""

import sys


def slugify(title: str) -> str:
    return title.lower().replace(" ", "-")


if __name__ == "__main__":
    print(slugify(sys.argv[1]))
'''

SECOND = '''\
"""Print the slug of a title."""

import re
import sys
import unicodedata


def slugify(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[a-z0-9]+", plain.lower()))


if __name__ == "__main__":
    print(slugify(sys.argv[1]))
'''

TEST = """\
import unittest

from slug import slugify


class SlugTest(unittest.TestCase):
    def test_plain_title(self) -> None:
        self.assertEqual(slugify("Hello World"), "hello-world")
"""

MORE_TESTS = """
    def test_punctuation_and_blanks(self) -> None:
        self.assertEqual(slugify("  Five  agents, one task!"), "five-agents-one-task")

    def test_accents(self) -> None:
        self.assertEqual(slugify("Cr\\u00e8me br\\u00fbl\\u00e9e"), "creme-brulee")
"""

ANALYST_SUMMARY = """\
ANALYST_SUMMARY

## Artifact review per file
proposal.md says why, specs/slugs/spec.md says what, tasks.md says in which steps.

## P1-P4 traceability
P1 (plain titles) and P2 (punctuation, accents) are scenarios of the spec; task 1.1 delivers both.

## Phased delivery coverage
One phase with two tasks.

## Downstream contract impact
None: nobody calls slug.py yet.

## Explicit handoff
Write slug.py with a function slugify, then test_slug.py; done when python3 -m unittest passes.
"""

ANALYST_REVISE = """\
REVIEW_RESULT: REVISE
REVIEW_NOTES:
- Artifacts: proposal and tasks read; the tasks name no test
- Traceability: P1 and P2 are covered
- Downstream contract: nothing relies on it yet
- Handoff: not actionable without a test to pass
Required changes:
- add a task for a unit test
"""

ANALYST_APPROVED = """\
REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- Artifacts: proposal, spec and tasks read again; the test is a task now
- Traceability: P1 and P2 each have a scenario
- Downstream contract: none to keep
- Handoff: actionable, file by file
Required changes:
- none
"""

PROGRAMMER_SUMMARY = """\
PROGRAMMER_SUMMARY

## Files changed
- slug.py: the function slugify and a command line
- test_slug.py: its unit tests

## Behaviour implemented
slug.py prints the slug of its argument.

## Validation
python3 -m unittest ended with exit code {exit_code}:
{output}

## Known limitations
none
"""

PROGRAMMER_REVIEW = """\
REVIEW_RESULT: VERDICT
REVIEW_NOTES:
- Implementation: read slug.py and test_slug.py, task by task
- Validation: ran python3 -m unittest, exit code {exit_code}
- Risk: only the program itself could regress, and its tests cover it
- Issues: ISSUES
Required changes:
- CHANGES
"""

TEST_REPORT = """\
RESULT: VERDICT
EVIDENCE:
- ran: sh check.sh, exit code {exit_code}, expected 0
{output}
"""

Action = dict[str, Any]


def _write(path: str, text: str) -> Action:
    return {"write": {"path": path, "text": text}}


def _review(verdict: str, issues: str, changes: str) -> list[Action]:
    text = PROGRAMMER_REVIEW.replace("VERDICT", verdict).replace("ISSUES", issues).replace("CHANGES", changes)
    return [{"think": 0.8}, {"run": "python3 -m unittest 2>&1 | tail -3"}, {"reply": text}]


def _program(code: str, tests: str) -> list[Action]:
    files = [_write("slug.py", code), _write("test_slug.py", tests)]
    return [
        {"think": 1.0},
        *files,
        {"run": "python3 -m unittest 2>&1 | tail -3"},
        {"reply": PROGRAMMER_SUMMARY},
    ]


_APPROVE = _review("APPROVED", "no defect found", "none")
_TRY = [
    {"think": 0.8},
    {"run": "sh check.sh"},
    {
        "when": "pass",
        "then": [{"reply": TEST_REPORT.replace("VERDICT", "PASS")}],
        "else": [{"reply": TEST_REPORT.replace("VERDICT", "FAIL")}],
    },
]

SCENARIO: Final = {
    "roles": {
        ANALYST.name: [
            [
                {"think": 1.0},
                {"run": "ls"},
                _write(f"{CHANGE}/proposal.md", PROPOSAL),
                _write(f"{CHANGE}/specs/slugs/spec.md", SPEC),
                _write(f"{CHANGE}/tasks.md", TASKS.replace("- [ ] 1.2 Write test_slug.py\n", "")),
                {"reply": ANALYST_SUMMARY},
            ],
            [{"think": 0.8}, _write(f"{CHANGE}/tasks.md", TASKS), {"reply": ANALYST_SUMMARY}],
        ],
        PEER_ANALYST.name: [
            [{"think": 0.8}, {"run": f"cat {CHANGE}/tasks.md"}, {"reply": ANALYST_REVISE}],
            [{"think": 0.8}, {"run": f"cat {CHANGE}/tasks.md"}, {"reply": ANALYST_APPROVED}],
        ],
        PROGRAMMER.name: [
            _program(FIRST, TEST),
            _program(FIRST, TEST),
            _program(SECOND, TEST + MORE_TESTS),
            [
                *_program(SECOND, TEST + MORE_TESTS)[:-1],
                {"run": f"sed -i.bak 's/\\[ \\]/[x]/' {CHANGE}/tasks.md && rm {CHANGE}/tasks.md.bak"},
                {"run": "python3 -m unittest 2>&1 | tail -3"},
                {"reply": PROGRAMMER_SUMMARY},
            ],
        ],
        PEER_PROGRAMMER.name: [
            _review("REVISE", "the command line is untested", "say in the summary how it was tried"),
            _APPROVE,
            _review("REVISE", "the tasks are not ticked off", "tick them off"),
            _APPROVE,
        ],
        TESTER.name: [_TRY],
    }
}
"""The first slug.py is wrong, which its reviewer does not see and the tester does; the second is right."""
