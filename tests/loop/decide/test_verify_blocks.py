"""The verify blocks of a task, in every form that CommonMark gives a code fence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.errors import TaskError
from quintet.loop.decide.checks import all_checks, task_checks
from quintet.loop.decide.lint import EXPLORE_HEADER, SCENARIO_HEADER, lint
from quintet.loop.decide.task import parse_task
from quintet.loop.decide.verify_blocks import LONGEST_SCRIPT, find_blocks
from tests.loop.runs import settings

EXPLORE = "The parser in parse.py drops the last line of a file without a line end. Keep it."


def task(scenario: str) -> str:
    return f"{EXPLORE_HEADER}\n{EXPLORE}\n\n{SCENARIO_HEADER}\nRun the check.\n{scenario}\n"


def scripts(scenario: str) -> list[str]:
    return [check.script for check in task_checks(task(scenario))]


@pytest.mark.parametrize(
    ("scenario", "script"),
    [
        ("```verify\nmake check\n```", "make check"),
        ("~~~verify\nmake check\n~~~", "make check"),
        ("``` verify\nmake check\n```", "make check"),
        ("```verify sh\nmake check\n```  ", "make check"),
        ("`````verify\nprintf '```\\n'\n```\n`````", "printf '```\\n'\n```"),
        ("```verify\nmake check\n`````", "make check"),
        ("```verify\necho ~~~\n~~~\n```", "echo ~~~\n~~~"),
        ("   ```verify\n   a\n     b\n  c\nd\n   ```", "a\n  b\nc\nd"),
        ("```verify\ncat <<END > x.md\n    ```\nEND\n```", "cat <<END > x.md\n    ```\nEND"),
        ("```verify\ncat <<-END\n\ttext\n\tEND\n```", "cat <<-END\n\ttext\n\tEND"),
        ("```verify\nmake\n\n  check\n```", "make\n\n  check"),
        ("- First this:\n  ```verify\n  make check\n  ```", "make check"),
        ("- ```verify\n  make check\n  ```", "make check"),
        ("10. First this:\n\n    ```verify\n    make check\n    ```", "make check"),
        ("1. a\n   - b\n\n   ```verify\n   make check\n   ```", "make check"),
        ("1. a\n\t```verify\n\tmake check\n\t```", "make check"),
    ],
)
def test_a_block_in_any_form_is_a_script(scenario: str, script: str) -> None:
    assert scripts(scenario) == [script]
    assert scripts(scenario.replace("\n", "\r\n")) == [script]
    assert not lint(task(scenario))


@pytest.mark.parametrize(
    "scenario",
    [
        "Run `verify` and look.",
        "```sh\nmake check\n```",
        "Type ```verify``` into it.",
    ],
)
def test_what_only_speaks_of_one_is_none(scenario: str) -> None:
    assert scripts(scenario) == []
    assert not [finding for finding in lint(task(scenario)) if "verify block" in finding.text]


@pytest.mark.parametrize(
    "scenario",
    [
        "```sh verify\nmake check\n```",
        "```Verify\nmake check\n```",
        "> ```verify\n> make check\n> ```",
        "Text.\n\n    ```verify\n    make check\n    ```",
        "````md\n```verify\nmake check\n```\n````",
        "```sh\nnever closed\n\n```verify\nmake check\n```",
    ],
)
def test_what_looks_like_one_and_is_none_is_told(scenario: str) -> None:
    assert scripts(scenario) == []
    assert [finding.level for finding in lint(task(scenario)) if "opens no verify block" in finding.text] == ["warning"]


def test_a_block_outside_of_the_scenario_is_not_run_and_that_is_told() -> None:
    text = task("Expected: exit code 0").replace(EXPLORE, f"{EXPLORE}\n```verify\ntrue\n```")
    assert task_checks(text) == ()
    assert [(one.line, one.level) for one in lint(text) if "run only below" in one.text] == [(3, "warning")]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("```verify\nmake check", "not closed"),
        ("```verify\nmake check\n~~~", "not closed"),
        ("````verify\nmake check\n```", "not closed"),
        ("- a\n  ```verify\nmake check\n  ```\n```", "not closed"),
        ("```verify\n```", "empty"),
        ("```verify\n \n# only words\n```", "empty"),
        ("```verify\nprintf '\0'\n```", "no script"),
        (f"```verify\n: {'x' * LONGEST_SCRIPT}\n```", "no script"),
    ],
)
def test_a_block_that_cannot_be_run_is_an_error(scenario: str, words: str) -> None:
    found = [finding for finding in lint(task(scenario)) if words in finding.text]
    assert [finding.level for finding in found] == ["error"]
    assert task(scenario).split("\n")[found[0].line - 1].lstrip(" `") == "verify"
    with pytest.raises(TaskError, match="verify block"):
        parse_task(task(scenario))


def test_the_blocks_come_in_their_order_and_before_the_projects_command() -> None:
    text = task("```verify\nfirst\n```\nThen:\n~~~verify\nsecond\n~~~")
    found = all_checks(text, settings(verify_cmd="make test"))
    assert [(check.title, check.script) for check in found] == [
        ("verify block 1", "first"),
        ("verify block 2", "second"),
        ("make test", "make test"),
    ]
    assert found[0].command == ("sh", "-e", "-c", "first")
    assert found[2].command == "make test"


def test_a_scenario_whose_block_says_what_has_to_come_out_needs_no_words_for_it() -> None:
    text = task("```verify\ngrep -q hello greeting.txt\n```")
    assert not [finding for finding in lint(text) if "expected" in finding.text]


LINES = ("make check", "```", "~~~", "````", "- ```", "```verify", "  x", "\ttab", "", "    ```", "1. one", "> ```")


@given(st.lists(st.sampled_from(LINES), min_size=1), st.integers(0, 3), st.sampled_from("`~"))
def test_a_fence_that_is_longer_than_all_in_it_keeps_every_line(lines: list[str], indent: int, mark: str) -> None:
    before, fence = " " * indent, mark * 5
    scenario = "\n".join([f"{before}{fence}verify", *(f"{before}{line}" for line in lines), fence])
    tab = " " * (4 - indent) if indent else "\t"
    assert scripts(scenario) == ["\n".join(line.replace("\t", tab) for line in lines)]


@given(st.lists(st.sampled_from((*LINES, "- ```verify", "~~~ verify", "2. two", "   ~~~")), max_size=20))
def test_whatever_the_lines_are_a_run_takes_only_closed_blocks(lines: list[str]) -> None:
    text = task("\n".join(lines))
    try:
        parse_task(text)
    except TaskError:
        return
    assert all(block.is_closed and not block.is_empty for block in find_blocks(lines, range(len(lines))).found)
