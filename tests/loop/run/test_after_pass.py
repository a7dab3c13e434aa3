"""What follows a PASS, with the real git and a stand-in for openspec on PATH."""

import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from quintet.config import Settings
from quintet.loop.decide.flow import apply, next_step
from quintet.loop.decide.state import State, Status, Turn
from quintet.loop.decide.steps import Finished, FollowUp
from quintet.loop.journal import Noted, Warned
from quintet.loop.run.after_pass import carry_out
from quintet.loop.run.work_tree import head_commit, uncommitted
from quintet.roles import Phase

TASK = "*** ORIGINAL EXPLORE SUMMARY ***\n# Add a greeting\nMore.\n\n*** SCENARIO TEST ***\nRun it.\n"


@dataclass
class Shop:
    """A project and what post-processing said of it."""

    wd: Path
    settings: Settings
    said: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.wd, capture_output=True, text=True, check=True)
        return done.stdout

    def process(self, **known: Any) -> None:
        """Everything that the settings ask for after a PASS; `known` is what the state knows beside it."""
        known["outputs"] = State().outputs | known.get("outputs", {})
        state = State(prompt=TASK, current_phase=Phase.TESTER, turn=Turn.PASSED, **known)
        while isinstance(step := next_step(state, self.settings), FollowUp):
            state, events = apply(state, step, carry_out(step, self.settings, state), self.settings)
            self.said += [event.text for event in events if isinstance(event, Noted)]
            self.warned += [event.text for event in events if isinstance(event, Warned)]
        assert step == Finished(Status.PASS), "whatever goes wrong, the PASS stands"

    def write(self, name: str, text: str = "x\n") -> None:
        path = self.wd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def committed(self) -> set[str]:
        """The paths in the last commit's tree."""
        return set(self.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD").split("\0")) - {""}

    @property
    def count(self) -> int:
        return int(self.git("rev-list", "--count", "--all"))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home, wd = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    wd.mkdir()
    config = home / "gitconfig"
    config.write_text(
        "[user]\n name = A\n email = a@example.invalid\n useConfigOnly = true\n[init]\n defaultBranch = main\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("EMAIL", raising=False)
    made = Shop(wd, Settings(wd=wd, prompt=TASK, state_file=wd / ".tmp" / "quintet-state.json", post_git_commit=True))
    made.git("init", "--quiet")
    made.write("readme.txt")
    made.git("add", ".")
    made.git("commit", "--quiet", "-m", "first")
    made.write(".tmp/quintet-state.json", "{}")
    made.write(".tmp/.gitignore", "*\n")
    return made


def test_one_commit_of_the_whole_work_tree(shop: Shop) -> None:
    shop.write("new.txt")
    shop.write("deep/er/new.txt")
    (shop.wd / "readme.txt").unlink()
    shop.process()
    assert shop.warned == []
    assert shop.count == 2
    assert shop.committed == {"new.txt", "deep/er/new.txt"}
    assert shop.said == [f"committed as {shop.git('rev-parse', 'HEAD').strip()}"]
    assert shop.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "name",
    [
        "pages/[id].tsx",
        "report (1).csv",
        "-rf",
        "--help",
        "ünï cödé.txt",
        "new\nline.txt",
        "*.txt",
        ":(exclude)x",
        "!bang",
        "quote\"s'.txt",
        "back\\slash",
        " leading and trailing ",
        "tab\there",
        ".tmp2/file",
        "sub/.tmp/file",
    ],
)
def test_unusual_names_are_committed_as_they_are(shop: Shop, name: str) -> None:
    shop.write(name, "content\n")
    shop.process()
    assert shop.warned == []
    assert shop.committed == {"readme.txt", name}
    assert (shop.wd / name).read_text() == "content\n"


@pytest.mark.parametrize("ignores_itself", [True, False])
def test_tmp_is_never_committed(shop: Shop, ignores_itself: bool) -> None:
    if not ignores_itself:
        (shop.wd / ".tmp" / ".gitignore").unlink()
    shop.write(".tmp/run/001-analyst.md")
    shop.write("new.txt")
    shop.process()
    assert shop.warned == []
    assert shop.committed == {"readme.txt", "new.txt"}


def test_tmp_is_not_committed_even_where_an_agent_has_added_it(shop: Shop) -> None:
    shop.git("add", "--force", ".tmp")
    shop.write("new.txt")
    shop.process()
    assert shop.committed == {"readme.txt", "new.txt"}


def test_tmp_that_was_in_the_repository_before_stays_as_it_was(shop: Shop) -> None:
    shop.git("add", "--force", ".tmp/quintet-state.json")
    shop.git("commit", "--quiet", "-m", "careless")
    shop.write(".tmp/quintet-state.json", '{"new": 1}')
    shop.write("new.txt")
    shop.process()
    assert shop.git("show", "HEAD:.tmp/quintet-state.json") == "{}"
    assert "new.txt" in shop.committed


def test_a_state_file_elsewhere_in_the_project_is_never_committed(shop: Shop) -> None:
    shop.settings = replace(shop.settings, state_file=shop.wd / "my [state].json")
    shop.write("my [state].json")
    shop.write("new.txt")
    shop.process()
    assert shop.committed == {"readme.txt", "new.txt"}


def test_what_the_project_ignores_stays_out(shop: Shop) -> None:
    shop.write(".gitignore", "*.log\n.tmp\n")
    shop.write("noise.log")
    shop.process()
    assert shop.warned == []
    assert shop.committed == {"readme.txt", ".gitignore"}


@pytest.mark.parametrize("name", ["packages (1)/app [x]", "a:(b", " spaced ", "ü"])
def test_a_subdirectory_of_a_repository(shop: Shop, name: str) -> None:
    """The commit is of the whole work tree, and the project's own .tmp stays out."""
    inner = shop.wd / name
    inner.mkdir(parents=True)
    shop.settings = replace(shop.settings, wd=inner, state_file=inner / ".tmp" / "quintet-state.json")
    shop.write(f"{name}/.tmp/run/001-analyst.md")
    shop.write(f"{name}/code.py")
    shop.write("outside.py")
    shop.process()
    assert shop.warned == []
    assert shop.committed == {"readme.txt", f"{name}/code.py", "outside.py"}


def test_the_first_commit_of_a_repository(shop: Shop, tmp_path: Path) -> None:
    shop.wd = tmp_path / "fresh"
    shop.wd.mkdir()
    shop.git("init", "--quiet")
    shop.settings = replace(shop.settings, wd=shop.wd, state_file=shop.wd / ".tmp" / "quintet-state.json")
    shop.write(".tmp/x.md")
    shop.write("new.txt")
    assert not head_commit(shop.wd)
    shop.process()
    assert shop.warned == []
    assert shop.committed == {"new.txt"}


@pytest.mark.parametrize("ignores_itself", [True, False])
def test_nothing_to_commit(shop: Shop, ignores_itself: bool) -> None:
    if not ignores_itself:
        (shop.wd / ".tmp" / ".gitignore").unlink()
    shop.process()
    assert (shop.count, shop.said, shop.warned) == (1, ["nothing to commit"], [])


def test_no_identity_is_a_warning(shop: Shop) -> None:
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text("[user]\n useConfigOnly = true\n")
    shop.write("new.txt")
    shop.process()
    assert shop.count == 1
    (warning,) = shop.warned
    assert "git commit failed" in warning
    assert "\n" not in warning
    assert (shop.wd / "new.txt").exists()


def test_a_failing_hook_is_a_warning_with_its_words(shop: Shop) -> None:
    hook = shop.wd / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho 'lint: not good enough' >&2\nexit 1\n")
    hook.chmod(0o755)
    shop.write("new.txt")
    shop.process()
    assert shop.count == 1
    assert "lint: not good enough" in shop.warned[0]
    hook.write_text('#!/bin/sh\nread answer\ntest -z "$answer"\n')
    shop.process()
    assert shop.count == 2


def test_a_detached_head_is_committed_to_and_told(shop: Shop) -> None:
    shop.git("checkout", "--quiet", "--detach")
    shop.write("new.txt")
    shop.process()
    assert shop.committed == {"readme.txt", "new.txt"}
    assert "detached" in shop.warned[0]


def test_a_worktree(shop: Shop, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shop.git("worktree", "add", "--quiet", "-b", "side", str(tree))
    main = shop.git("rev-parse", "main")
    shop.wd, shop.settings = tree, replace(shop.settings, wd=tree, state_file=tree / ".tmp" / "quintet-state.json")
    shop.write("new.txt")
    shop.write(".tmp/x.md")
    shop.process()
    assert shop.warned == []
    assert shop.committed == {"readme.txt", "new.txt"}
    assert shop.git("rev-parse", "main") == main


def test_in_the_middle_of_a_merge_nothing_is_touched(shop: Shop) -> None:
    shop.git("checkout", "--quiet", "-b", "other")
    shop.write("readme.txt", "theirs\n")
    shop.git("commit", "--quiet", "-am", "theirs")
    shop.git("checkout", "--quiet", "main")
    shop.write("readme.txt", "ours\n")
    shop.git("commit", "--quiet", "-am", "ours")
    merge = subprocess.run(["git", "merge", "other"], cwd=shop.wd, capture_output=True, check=False)
    assert merge.returncode
    before = shop.git("status", "--porcelain")
    shop.process()
    assert "MERGE_HEAD" in shop.warned[0]
    assert shop.git("status", "--porcelain") == before
    assert shop.count == 3


def test_in_the_middle_of_a_rebase_nothing_is_touched(shop: Shop) -> None:
    (shop.wd / ".git" / "rebase-merge").mkdir()
    shop.write("new.txt")
    shop.process()
    assert "rebase-merge" in shop.warned[0]
    assert shop.count == 1


def test_no_repository_is_a_warning(shop: Shop, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    shop.settings = replace(shop.settings, wd=bare, state_file=bare / "state.json")
    shop.process()
    assert "not in a git repository" in shop.warned[0]
    assert not head_commit(bare)
    assert uncommitted(shop.settings) == []


def test_a_locked_index_is_a_warning(shop: Shop) -> None:
    (shop.wd / ".git" / "index.lock").write_text("")
    shop.write("new.txt")
    shop.process()
    assert shop.count == 1
    assert "git add failed" in shop.warned[0]


@pytest.mark.parametrize(
    ("comment", "message"),
    [("", "Quintet: Add a greeting"), ("  my words  ", "my words"), ("-m x", "-m x"), ("a\n\nb", "a\n\nb")],
)
def test_the_message(shop: Shop, comment: str, message: str) -> None:
    shop.settings = replace(shop.settings, post_git_commit_comment=comment)
    shop.write("new.txt")
    shop.process()
    assert shop.git("log", "-1", "--format=%B").strip() == message


def test_uncommitted_changes_are_counted_without_tmp(shop: Shop) -> None:
    (shop.wd / ".tmp" / ".gitignore").unlink()
    assert uncommitted(shop.settings) == []
    shop.write("readme.txt", "changed\n")
    shop.write("new dir/a")
    assert len(uncommitted(shop.settings)) == 2


# -- OpenSpec


@pytest.fixture
def spec(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A stand-in for openspec that notes its arguments and moves the change, or fails where a file says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "openspec"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$PWD $@" >> "{tmp_path}/calls"\n'
        f'if [ -e "{tmp_path}/fail" ]; then echo "validation failed"; exit $(cat "{tmp_path}/fail"); fi\n'
        'mkdir -p openspec/changes/archive && mv "openspec/changes/$2" "openspec/changes/archive/2026-$2"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    shop.settings = replace(shop.settings, post_openspec_archive=True)
    return shop


def calls(shop: Shop) -> list[str]:
    path = shop.wd.parent / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_the_one_active_change_is_archived_then_committed(spec: Shop) -> None:
    spec.write("openspec/changes/add-greeting/proposal.md")
    spec.write("openspec/changes/archive/2025-old/proposal.md")
    spec.write("openspec/changes/notes.md")
    spec.process()
    assert calls(spec) == [f"{spec.wd} archive add-greeting --yes"]
    assert spec.warned == []
    assert spec.said[0] == "OpenSpec change add-greeting archived"
    assert "openspec/changes/archive/2026-add-greeting/proposal.md" in spec.committed


@pytest.mark.parametrize("there", [True, False])
def test_no_active_change_is_skipped_and_the_commit_is_made(spec: Shop, there: bool) -> None:
    spec.write("openspec/changes/archive/2025-old/proposal.md" if there else "new.txt")
    spec.process()
    assert calls(spec) == []
    assert "no active change" in spec.warned[0]
    assert spec.count == 2


def test_several_active_changes_are_skipped_and_named(spec: Shop) -> None:
    spec.write("openspec/changes/one/proposal.md")
    spec.write("openspec/changes/two/proposal.md")
    spec.process()
    assert calls(spec) == []
    assert "one, two" in spec.warned[0]
    assert spec.count == 2, "a skipped archive does not skip the commit"


def test_a_failing_archive_skips_the_commit(spec: Shop) -> None:
    (spec.wd.parent / "fail").write_text("1")
    spec.write("openspec/changes/one/proposal.md")
    spec.process()
    assert spec.count == 1
    assert "archive of one failed" in "\n".join(spec.warned)
    assert "no commit is made" in "\n".join(spec.warned)


def test_an_archive_that_has_moved_nothing_is_told(spec: Shop) -> None:
    """The exit code decides; that the folder is still there is worth a warning."""
    (spec.wd.parent / "fail").write_text("0")
    spec.write("openspec/changes/one/proposal.md")
    spec.process()
    assert "is still there" in "\n".join(spec.warned)
    assert spec.count == 2


def test_openspec_that_is_not_installed_is_a_failed_archive(spec: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    spec.write("openspec/changes/one/proposal.md")
    git = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    only_git = spec.wd.parent / "only-git"
    only_git.mkdir()
    (only_git / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(only_git))
    spec.process()
    assert "not installed" in spec.warned[0]
    assert len(spec.warned) == 2


def test_archive_alone(spec: Shop) -> None:
    spec.settings = replace(spec.settings, post_git_commit=False)
    spec.write("openspec/changes/one/proposal.md")
    spec.process()
    assert spec.count == 1
    assert spec.said == ["OpenSpec change one archived"]
