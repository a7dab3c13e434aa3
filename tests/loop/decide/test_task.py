"""The task file."""

import re

import pytest
from hypothesis import given

from quintet.errors import TaskError
from quintet.loop.decide.lint import PLACEHOLDER
from quintet.loop.decide.task import EXPLORE_HEADER, SCENARIO_HEADER, Task, parse_task
from tests.loop.texts import agent_texts

GOOD = f"{EXPLORE_HEADER}\nexplore\nmore\n{SCENARIO_HEADER}\nscenario\n"
TURNED = f"{SCENARIO_HEADER}\nscenario\n{EXPLORE_HEADER}\nexplore\nmore\n"


def test_the_headers_are_those_of_the_specification() -> None:
    assert EXPLORE_HEADER == "*** ORIGINAL EXPLORE SUMMARY ***"
    assert SCENARIO_HEADER == "*** SCENARIO TEST ***"


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        TURNED,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + TURNED.replace("\n", "\r\n"),
        GOOD.replace("***\n", "*** \t \n"),
        "a preface\n\n" + GOOD,
        GOOD.replace("explore\n", "\n\n  explore\n"),
    ],
)
def test_both_sections_are_found(text: str) -> None:
    assert parse_task(text) == Task("explore\nmore", "scenario")


@pytest.mark.parametrize(
    ("text", "header", "word"),
    [
        (f"{SCENARIO_HEADER}\nx", EXPLORE_HEADER, "missing"),
        (f"{EXPLORE_HEADER}\nx", SCENARIO_HEADER, "missing"),
        (f"{EXPLORE_HEADER}\nx\n{SCENARIO_HEADER}\n \n\n", SCENARIO_HEADER, "empty"),
        (f"{EXPLORE_HEADER}\n{SCENARIO_HEADER}\nx", EXPLORE_HEADER, "empty"),
        ("", EXPLORE_HEADER, "missing"),
        ("just do it", EXPLORE_HEADER, "missing"),
        (GOOD + GOOD, EXPLORE_HEADER, "twice"),
        (f"{EXPLORE_HEADER}\nx\nsee {SCENARIO_HEADER}\ny", SCENARIO_HEADER, "missing"),
    ],
)
def test_a_bad_task_is_an_error_that_names_the_section(text: str, header: str, word: str) -> None:
    with pytest.raises(TaskError, match=rf"^task\.md: .*{re.escape(header)}.*{word}[^\n]*$"):
        parse_task(text, "task.md")


@pytest.mark.parametrize(
    "line", ["** SCENARIO TEST **", "# Scenario test", "  *** SCENARIO TEST ***", "***SCENARIO TEST***"]
)
def test_a_near_miss_is_named_by_its_line(line: str) -> None:
    with pytest.raises(TaskError, match="line 3 "):
        parse_task(f"{EXPLORE_HEADER}\nexplore\n{line}\nscenario")


@given(agent_texts, agent_texts)
def test_any_text_is_a_task_or_a_task_error(first: str, second: str) -> None:
    text = f"{EXPLORE_HEADER}\n{first}\n{SCENARIO_HEADER}\n{second}"
    if PLACEHOLDER in text:
        return  # a blank that is left is an error, and a text that only begins like one is none
    if first.strip() and second.strip():
        task = parse_task(text)
        assert task.explore_summary
        assert task.scenario_test
    else:
        with pytest.raises(TaskError, match=r"^[^\n]*$"):
            parse_task(text)
