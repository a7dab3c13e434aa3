"""`quintet run` with a task file as its argument, and `--dry-run`, which leaves no trace."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.cli.options import config_and_task
from quintet.errors import ConfigError
from tests.stub.project import ONE_PASS, Project, project_in
from tests.stub.replies import TASK
from tests.workspace.repositories import sh


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        made.env["PROMPT"] = ""
        (made.wd / "task.md").write_text(TASK, encoding="utf-8")
        yield made


def files(project: Project) -> list[str]:
    return sorted(str(path.relative_to(project.wd)) for path in project.wd.rglob("*"))


def test_a_task_file_is_an_argument_and_quintet_json_is_found(project: Project) -> None:
    (project.wd / "quintet.json").write_text('{"start_agent": "programmer"}')
    done = project.run("task.md")
    assert done.code == 0, done.text
    assert project.roles == ONE_PASS[2:]


def test_a_dry_run_shows_the_first_prompt_and_starts_nothing(project: Project) -> None:
    before = files(project)
    done = project.run("task.md", "--dry-run")
    assert done.code == 0, done.text
    assert project.stub.calls == []
    assert files(project) == before
    assert "new, begins at analyst, round 1, cycle 1" in done.out
    told = json.loads(project.run("--json", "--dry-run", "task.md").out)
    assert told["role"] == "analyst"
    assert all(f"  | {line}" in done.out for line in told["prompt"].splitlines())
    assert project.run("task.md").code == 0
    sent = project.stub.prompts[0][1]
    assert told["prompt"].splitlines()[:20] == sent.splitlines()[:20], "what a run sends is what was shown"


def test_a_dry_run_of_a_saved_run_shows_where_it_goes_on(project: Project) -> None:
    project.saved_run()
    before = project.state_file.read_bytes()
    done = project.run("--dry-run")
    assert done.code == 0, done.text
    assert "goes on with 20260101-000000-abcdef at programmer, round 1, cycle 1" in done.out
    assert project.state_file.read_bytes() == before


def test_a_dry_run_in_a_new_worktree_says_what_is_made_and_what_happens_after(project: Project) -> None:
    project.saved_run()
    (project.wd / "task.md").write_text(TASK.replace("greeting", "farewell"), encoding="utf-8")
    done = project.run("--dry-run", "--worktree", "task.md")
    assert done.code == 1, done.text
    assert "a worktree needs a git repository" in done.err
    sh(project.wd, "git init -q && git add task.md && git -c user.name=T -c user.email=t@localhost commit -qm Begin")
    done = project.run("--dry-run", "--worktree", "task.md")
    assert done.code == 0, done.text
    assert "new, begins at analyst, round 1, cycle 1" in done.out
    assert f"a new worktree at HEAD ({sh(project.wd, 'git rev-parse HEAD')[:12]})" in done.out
    assert "after PASS  the work tree is committed" in done.out
    assert len(sh(project.wd, "git worktree list").splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "settings", "word"),
    [
        (["--dry-run"], {}, "there is no task"),
        (["--dry-run", "quintet.json"], {}, "quintet.json"),
        (["--dry-run", "task.md", "other.md"], {}, "more than one task file"),
        (["--dry-run", "task.md", "--prompt-file", "task.md"], {}, "named twice"),
        (["--dry-run", "task.md"], {"RESUME": "1"}, "cannot resume"),
        (["--dry-run", "task.md"], {"PROMPTS_DIR": "nowhere"}, "nowhere"),
        (["task.md"], {"PROMPTS_DIR": "nowhere"}, "nowhere"),
        (["blank.md"], {}, "a blank of the template is left"),
    ],
)
def test_a_mistake_is_one_line(project: Project, arguments: list[str], settings: dict[str, str], word: str) -> None:
    (project.wd / "blank.md").write_text(TASK + "<<fill in: what comes out>>\n")
    done = project.run(*arguments, **settings)
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert word in done.err
    assert project.stub.calls == []


def test_a_folder_of_ones_own_prompts_is_used(project: Project) -> None:
    texts = project.wd / "texts"
    texts.mkdir()
    (texts / "analyst.md").write_text("My own words.\n{{explore}}\n{{response_file}}\n")
    done = project.run("task.md", PROMPTS_DIR="texts")
    assert done.code == 0, done.text
    prompts = [text for _, text in project.stub.prompts]
    assert prompts[0].startswith("My own words.\n")
    assert not prompts[1].startswith("My own words.\n")


@pytest.mark.parametrize(
    ("names", "config", "task"),
    [
        ([], None, None),
        (["c.json"], "c.json", None),
        (["t.md"], None, "t.md"),
        (["t.txt", "c.json"], "c.json", "t.txt"),
        (["c.JSON", "t.MD"], "c.JSON", "t.MD"),
        (["braces"], "braces", None),
        (["words"], None, "words"),
        (["nowhere"], "nowhere", None),
        (["."], ".", None),
    ],
)
def test_a_config_and_a_task_are_told_apart(
    names: list[str], config: str | None, task: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("braces").write_text('\ufeff \n{"provider": "codex"}', encoding="utf-8")
    Path("words").write_text(TASK, encoding="utf-8")
    found = config_and_task([Path(name) for name in names])
    assert found == (Path(config) if config else None, Path(task) if task else None)


def test_two_of_a_kind_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"a\.json, b\.json"):
        config_and_task([Path("a.json"), Path("b.json")])


def test_the_task_of_a_run_that_goes_on_is_its_own(project: Project) -> None:
    project.saved_run()
    (project.wd / "other.md").write_text(TASK.replace("Add a greeting.", "Another thing."), encoding="utf-8")
    settings = {"PROMPT": None, "PROMPT_FILE": "other.md"}  # named nowhere on the command line
    assert "that of the saved run: Add a greeting." in project.run("--dry-run", **settings).out
    done = project.run(**settings)
    assert done.code == 0, done.text
    assert "RESUME=0 begins a new run" in done.text


def test_a_folder_is_no_state_file(project: Project) -> None:
    (project.wd / "src").mkdir()
    for name in ("src", "/"):
        done = project.run("task.md", "--state-file", name)
        assert done.code == 1
        assert "allowed: a file" in done.err
        assert len(done.err.splitlines()) == 1
    assert (project.wd / "src").is_dir()
