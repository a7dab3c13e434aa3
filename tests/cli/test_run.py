"""`quintet run`: bad input of every kind is one clear line and exit code 1; warnings are shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stub.project import ONE_PASS, Project, project_in
from tests.stub.replies import TASK


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"MAX_ROUNDS": "0"}, ["MAX_ROUNDS", '"0"']),
        ({"MAX_REVIEW_CYCLES": "0"}, ["MAX_REVIEW_CYCLES"]),
        ({"POLL_SECONDS": "-1"}, ["POLL_SECONDS"]),
        ({"REQUIRE_REVIEW_EVIDENCE": "maybe"}, ["REQUIRE_REVIEW_EVIDENCE", "maybe"]),
        ({"START_AGENT": "testr"}, ["START_AGENT", "tester"]),
        ({"PROVIDER": "codx"}, ["PROVIDER", "codex"]),
        ({"WD": "/no/such/folder"}, ["WD", "/no/such/folder"]),
        ({"PROMPT_FILE": "/no/such/file"}, ["/no/such/file"]),
        ({"PROMPT": ""}, ["task"]),
        ({"PROMPT": "*** SCENARIO TEST ***\nx\n"}, ["ORIGINAL EXPLORE SUMMARY"]),
        ({"API": "not an address"}, ["API"]),
        ({"RESUME": "1"}, ["resume"]),
    ],
)
def test_a_bad_setting_is_one_line(project: Project, settings: dict[str, str], words: list[str]) -> None:
    done = project.run(**settings)
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert [word for word in words if word not in done.err] == []
    assert project.stub.calls == []


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ('{"limits": {"max_round": 3}}', "limits.max_rounds"),
        ('{"agents": {"tster": {}}}', "agents.tester"),
        ('{"agents": null}', "agents"),
        ('{"agents": {"tester": {"provider": "nope"}}}', "nope"),
    ],
)
def test_a_bad_config_file_is_one_line(project: Project, document: str, word: str) -> None:
    path = project.home / "config.json"
    path.write_text(document)
    done = project.run(str(path))
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert word in done.err


@pytest.mark.parametrize("arguments", [["--no-such-flag"], ["a.json", "b.json"], ["nowhere.json"], ["--max-rounds"]])
def test_a_bad_command_line_is_one_line(project: Project, arguments: list[str]) -> None:
    done = project.run(*arguments)
    assert done.code == 1
    assert len(done.err.splitlines()) == 1


def test_a_flag_beats_the_environment(project: Project) -> None:
    done = project.run("--start-agent", "tester", START_AGENT="programmer")
    assert done.code == 0
    assert project.roles == ["tester"]


def test_a_config_file_alone_will_do(project: Project) -> None:
    path = project.home / "config.json"
    (project.home / "task.md").write_text("\ufeff" + TASK.replace("\n", "\r\n"), encoding="utf-8")
    path.write_text(
        f'\ufeff{{"api": "{project.stub.url}", "wd": "{project.wd}", "prompt_file": "task.md",'
        ' "limits": {"poll_seconds": 0.05, "min_review_cycles_before_approval": 1}}',
        encoding="utf-8",
    )
    settings = dict.fromkeys(("API", "WD", "PROMPT", "POLL_SECONDS", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL"))
    done = project.run(str(path), cwd=project.home, **settings)
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS


def test_a_warning_about_the_settings_is_shown_and_kept(project: Project) -> None:
    done = project.run(MIN_REVIEW_CYCLES_BEFORE_APPROVAL="2", MAX_REVIEW_CYCLES="1")
    assert done.code == 0
    assert "warning: min_review_cycles_before_approval (2) is above max_review_cycles (1)" in done.out
    assert "above max_review_cycles" in project.events("warned")[0]["text"]


def test_every_line_of_a_run_has_its_time_and_errors_go_to_stderr(project: Project) -> None:
    done = project.run()
    assert done.err == ""
    lines, screen = done.out.split("\n\n", 1)
    assert all(line[2] == line[5] == ":" for line in lines.splitlines())
    assert lines.endswith("PASS in round 1, on the tester's word alone")
    assert screen.startswith("PASS in round 1, "), "what it rests on and what to do next come after the lines"
