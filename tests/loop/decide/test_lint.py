"""What `quintet lint` says of a task file, and that a run refuses exactly its errors."""

import pytest
from hypothesis import given

from quintet.errors import TaskError
from quintet.loop.decide.lint import EXPLORE_HEADER, PLACEHOLDER, SCENARIO_HEADER, Finding, lint
from quintet.loop.decide.task import parse_task
from tests.loop.texts import agent_texts

EXPLORE = "The parser in parse.py drops the last line of a file without a line end. Keep it."
SCENARIO = "Run: python3 -m pytest\nExpected: exit code 0"
GOOD = f"{EXPLORE_HEADER}\n{EXPLORE}\n\n{SCENARIO_HEADER}\n{SCENARIO}\n"


def test_a_good_task_has_nothing_to_say() -> None:
    assert lint(GOOD) == []
    assert lint("\ufeff" + GOOD.replace("\n", "\r\n")) == []


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "ORIGINAL EXPLORE SUMMARY"),
        (f"{EXPLORE_HEADER}\n{EXPLORE}\n", 3, "SCENARIO TEST"),
        (GOOD.replace(SCENARIO_HEADER, "## Scenario test"), 4, "line 4 has to read exactly so"),
        (GOOD.replace(SCENARIO, "   "), 4, "is empty"),
        (GOOD + SCENARIO_HEADER + "\nx\n", 7, "lines 4 and 7"),
        (GOOD.replace(EXPLORE, f"x\n{PLACEHOLDER}what is wrong>> y"), 3, "<<fill in: what is wrong>>"),
    ],
)
def test_an_error_has_its_line_and_stops_a_run(text: str, line: int, words: str) -> None:
    found = [finding for finding in lint(text) if words in finding.text]
    assert [(finding.line, finding.level) for finding in found] == [(line, "error")]
    with pytest.raises(TaskError):
        parse_task(text)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("A preface.\n" + GOOD, 1, "reaches no agent"),
        (GOOD.replace(EXPLORE, "Fix it."), 1, "very short"),
        (GOOD.replace("Expected: exit code 0", ""), 4, "no expected result"),
        (GOOD.replace(SCENARIO, "Expected: all is well"), 4, "nothing to run"),
        (GOOD.replace("Keep it.", "TODO: say how."), 2, "TODO"),
        (GOOD.replace("pytest", "<your test command>"), 5, "<your test command>"),
    ],
)
def test_a_warning_has_its_line_and_stops_nothing(text: str, line: int, words: str) -> None:
    assert [(one.line, one.level) for one in lint(text) if words in one.text] == [(line, "warning")]
    assert parse_task(text).scenario_test


def test_all_errors_are_told_at_once() -> None:
    text = f"{EXPLORE_HEADER}\n{PLACEHOLDER}a>>\n{PLACEHOLDER}b>>\n"
    assert [finding.line for finding in lint(text)] == [4, 2, 3]
    with pytest.raises(TaskError, match=r"and 2 more; quintet lint"):
        parse_task(text, "task.md")


@pytest.mark.parametrize(
    "scenario",
    ["`make test` succeeds", "1. Open the page\n2. The title says Hello", "curl localhost:80 -> 200", "sh a.sh => 0"],
)
def test_a_scenario_in_other_words_is_good(scenario: str) -> None:
    assert lint(GOOD.replace(SCENARIO, scenario)) == []


@given(agent_texts, agent_texts)
def test_a_run_refuses_exactly_what_is_an_error(first: str, second: str) -> None:
    text = f"{EXPLORE_HEADER}\n{first}\n{SCENARIO_HEADER}\n{second}"
    findings: list[Finding] = lint(text)
    assert all(1 <= finding.line <= text.count("\n") + text.count("\r") + 1 for finding in findings)
    if any(finding.is_error for finding in findings):
        with pytest.raises(TaskError):
            parse_task(text)
    else:
        parse_task(text)
