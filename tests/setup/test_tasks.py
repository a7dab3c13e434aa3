"""`quintet new` and `quintet lint`."""

import json

import pytest

from quintet.errors import ConfigError, TaskError
from quintet.loop.decide.lint import lint
from quintet.prose import slug
from quintet.setup.tasks import SLOT, shipped_template
from tests.setup.conftest import Desk

GOOD = """\
*** ORIGINAL EXPLORE SUMMARY ***
The command report has no --json. Add it in report.py, beside --html.
*** SCENARIO TEST ***
Run: ./report --json
Expected: a JSON object
"""


def test_a_new_task_has_both_sections_and_says_what_to_fill_in(desk: Desk) -> None:
    done = desk.quintet("new", "  Add a --json\noption ")
    path = desk.wd / "tasks/add-a-json-option.md"
    assert done.exit_code == 0, done.output
    assert "quintet run tasks/add-a-json-option.md" in done.output
    text = path.read_text()
    assert text.splitlines()[:2] == ["*** ORIGINAL EXPLORE SUMMARY ***", "Add a --json option"]
    findings = lint(text)
    assert findings
    assert all("blank of the template" in finding.text for finding in findings)


def test_the_shipped_template_lacks_nothing_but_its_blanks() -> None:
    filled = shipped_template().replace(SLOT, "x").replace("<<fill in: ", "Some words about ").replace(">>", "")
    assert lint(filled) == []


def test_the_projects_own_template_is_used(desk: Desk) -> None:
    (desk.wd / ".quintet").mkdir()
    (desk.wd / ".quintet/task.md").write_text(f"own\n{SLOT}\n")
    desk.quintet("new", "Do it", "--output", "mine.md")
    assert (desk.wd / "mine.md").read_text() == "own\nDo it\n"


def test_a_template_without_a_place_for_the_task_is_named(desk: Desk) -> None:
    (desk.wd / ".quintet").mkdir()
    (desk.wd / ".quintet/task.md").write_text("own\n")
    error = desk.quintet("new", "Do it").exception
    assert isinstance(error, TaskError)
    assert SLOT in str(error)


def test_nothing_is_overwritten(desk: Desk) -> None:
    desk.quintet("new", "Do it", "-o", "mine.md")
    before = desk.files()
    assert isinstance(desk.quintet("new", "Do it again", "-o", "mine.md").exception, TaskError)
    assert desk.files() == before


@pytest.mark.parametrize("sentence", ["", " \n"])
def test_a_task_needs_words(desk: Desk, sentence: str) -> None:
    assert isinstance(desk.quintet("new", sentence).exception, TaskError)


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Crème brûlée, now!", "creme-brulee-now"),
        ("../../etc/passwd", "etc-passwd"),
        ("word " * 40, "-".join(["word"] * 12)),
        ("x" * 200, "x" * 60),
    ],
)
def test_a_files_name_is_plain(sentence: str, name: str) -> None:
    assert slug(sentence) == name


def test_lint_names_the_line_and_the_level(desk: Desk) -> None:
    (desk.wd / "t.md").write_text(GOOD.replace("Expected: a JSON object", ""))
    done = desk.quintet("lint", "t.md")
    assert done.exit_code == 0, "a warning is no error"
    assert done.output.startswith("t.md:3: warning: the scenario has no expected result")
    (desk.wd / "t.md").write_text(GOOD.replace("*** SCENARIO TEST ***", "# Scenario"))
    done = desk.quintet("lint", "t.md")
    assert done.exit_code == 1
    assert 't.md:6: error: the section "*** SCENARIO TEST ***" is missing' in done.output


def test_lint_for_programs(desk: Desk) -> None:
    (desk.wd / "t.md").write_text(GOOD)
    assert json.loads(desk.quintet("lint", "--json", "t.md").output) == {"file": "t.md", "errors": 0, "findings": []}
    (desk.wd / "t.md").write_text("")
    done = desk.quintet("lint", "--json", "t.md")
    assert done.exit_code == 1
    assert [finding["level"] for finding in json.loads(done.output)["findings"]] == ["error", "error"]


def test_a_task_file_that_cannot_be_read(desk: Desk) -> None:
    assert isinstance(desk.quintet("lint", "nowhere.md").exception, ConfigError)
    (desk.wd / "t.md").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in str(desk.quintet("lint", "t.md").exception)


def test_quotes_may_be_forgotten(desk: Desk) -> None:
    assert desk.quintet("new", "Add", "a", "json", "option").exit_code == 0
    assert (desk.wd / "tasks/add-a-json-option.md").exists()


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("日本語 タスク", "日本語-タスク"),
        ("Straße über Nacht", "strasse-uber-nacht"),
        ("?!", "task"),
        ("Привет мир", "привет-мир"),
    ],
)
def test_a_title_in_any_alphabet_gives_a_name(sentence: str, name: str) -> None:
    assert slug(sentence) == name


def test_bytes_that_are_no_text_do_not_leave_half_a_file(desk: Desk) -> None:
    done = desk.quintet("new", "caf\udce9 bar")
    assert done.exit_code == 0, done.output
    (path,) = (desk.wd / "tasks").iterdir()
    assert "bar" in path.read_text()


def test_a_task_file_is_told_by_its_name(desk: Desk) -> None:
    error = desk.quintet("new", "Do it", "-o", "task.json").exception
    assert isinstance(error, TaskError)
    assert ".md" in str(error)
    assert not (desk.wd / "task.json").exists()
