"""The git folder that agents have to themselves: git works in it, and nothing of the user's can be changed there."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from quintet.errors import SandboxError
from quintet.sandbox.bubblewrap import find_bubblewrap
from quintet.sandbox.mounts import Access, Mount, bwrap_arguments
from quintet.sandbox.private_git import git_mounts, make_private_git, repositories_made_since
from tests.guard.projects import git
from tests.sandbox.need import need_bubblewrap

IDENTITY = {f"GIT_{who}_{what}": "a@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Agent:
    """A work tree, the private git folder of its agents, and what they run there."""

    def __init__(self, tree: Path, folder: Path) -> None:
        need_bubblewrap()
        self.tree, self.folder, self._made = tree, folder, False

    def run(self, command: str) -> "subprocess.CompletedProcess[str]":
        if not self._made:
            make_private_git(self.tree, self.folder)
            self._made = True
        found = find_bubblewrap()
        wanted = [*git_mounts(self.tree, self.folder), Mount(self.tree, Access.WRITE)]
        words = [found.program, *found.flags, *bwrap_arguments(wanted, self.tree, is_root=os.getuid() == 0)]
        env = {**os.environ, **IDENTITY}
        return subprocess.run([*words, "sh", "-c", command], env=env, capture_output=True, text=True, check=False)

    def do(self, command: str) -> str:
        done = self.run(command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()


def fingerprint(folder: Path) -> dict[str, str]:
    """All files and links below a folder, with what is in them."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or path.is_file():
            found[str(path)] = str(path.readlink()) if path.is_symlink() else path.read_bytes().hex()
    return found


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    tree = tmp_path / "project"
    (tree / "src").mkdir(parents=True)
    git(tree, "init", "--quiet", "--initial-branch=main")
    (tree / "src" / "a.txt").write_text("a\n")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "one")
    return Agent(tree, tmp_path / "private")


def test_agents_can_look_commit_and_stash_and_the_user_sees_nothing_of_it(agent: Agent) -> None:
    before = fingerprint(agent.tree / ".git")
    assert agent.do("git status --porcelain") == ""
    assert "one" in agent.do("git log --oneline")
    assert agent.do("echo b >> src/a.txt; git diff --stat | tail -1").startswith("1 file changed")
    agent.do(
        "git stash && git stash pop && git add --all && git commit --quiet -m two && git branch mine && git tag v1"
    )
    agent.do("git fsck --strict && git gc --quiet")
    assert agent.do("git log --format=%s") == "two\none"
    assert fingerprint(agent.tree / ".git") == before
    assert git(agent.tree, "status", "--porcelain") == "M src/a.txt"


ATTACKS = {
    "moves .git away": "mv .git x",
    "removes .git": "rm -rf .git; test ! -e .git",
    "writes a hook": "echo x > .git/hooks/pre-commit",
    "replaces the hooks": "rmdir .git/hooks && mkdir .git/hooks",
    "sets a file system monitor": "git config core.fsmonitor 'touch x'",
    "replaces the config": "echo x > x && mv x .git/config",
    "uses settings of the work tree": "echo /tmp > .git/commondir",
    "replaces commondir": "rm .git/commondir",
    "writes to the user's objects": "echo x > .git/users/0/objects/x",
    "moves the user's objects": "mv .git/users/0/objects x",
    "has a right to mount": "umount .git",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_refused(agent: Agent, name: str) -> None:
    before = fingerprint(agent.tree / ".git")
    done = agent.run(ATTACKS[name])
    assert done.returncode != 0, done.stdout
    assert fingerprint(agent.tree / ".git") == before


PRIVATE = {
    "links the index to a file": "rm .git/index; ln -s {file} .git/index; git add --all",
    "links the last message": "ln -s {file} .git/COMMIT_EDITMSG; git commit --allow-empty -m x",
    "links a reflog": "mkdir -p .git/logs; ln -sf {file} .git/logs/HEAD; git commit --allow-empty -m x",
    "points HEAD elsewhere": "echo ref: refs/heads/other > .git/HEAD",
    "moves main": "git update-ref refs/heads/main $(git commit-tree HEAD^{{tree}} -m x)",
    "writes refs by hand": "mkdir -p .git/refs/heads; echo x > .git/refs/heads/main; rm .git/packed-refs",
    "replaces an object": "git replace HEAD $(git commit-tree HEAD^{{tree}} -m x)",
    "makes the clone shallow": "git rev-parse HEAD > .git/shallow",
    "excludes everything": "echo '*' > .git/info/exclude",
    "adds an alternate": "echo /tmp >> .git/objects/info/alternates",
    "uses config.worktree": "printf '[core]\\n fsmonitor = touch x\\n' > .git/config.worktree",
}


@pytest.mark.parametrize("name", PRIVATE)
def test_what_reaches_only_the_private_folder(agent: Agent, name: str, tmp_path: Path) -> None:
    before, outside = fingerprint(agent.tree / ".git"), tmp_path / "file"
    outside.write_text("mine\n")
    agent.run(PRIVATE[name].format(file=outside))
    assert fingerprint(agent.tree / ".git") == before
    assert outside.read_text() == "mine\n"
    assert git(agent.tree, "status", "--porcelain") == ""


def test_the_git_folder_of_a_worktree(agent: Agent, tmp_path: Path) -> None:
    """Finding 4 and 11: its `.git` is a file, and the branches and objects are those of the user's repository."""
    main, tree = agent.tree, tmp_path / "second"
    git(main, "worktree", "add", "--quiet", "-b", "run", str(tree))
    agent.tree = tree
    before = fingerprint(main / ".git")
    assert agent.do("git symbolic-ref --short HEAD") == "run"
    agent.do("echo b > b.txt; git add --all; git commit --quiet -m two; git update-ref refs/heads/main HEAD")
    assert agent.do("git log --format=%s main") == "two\none"
    for order in ("mv .git x", "echo gitdir: /tmp > .git", f"echo /tmp > {main}/.git/worktrees/second/commondir"):
        assert agent.run(order).returncode != 0, order
    assert fingerprint(main / ".git") == before
    assert (tree / ".git").read_text() == f"gitdir: {main}/.git/worktrees/second\n"
    assert git(tree, "status", "--porcelain") == "?? b.txt"


def test_a_folder_without_a_repository_gets_none(tmp_path: Path) -> None:
    """A `.git` that an agent makes would be taken for the project's by the next command of Quintet or the user."""
    tree = tmp_path / "plain"
    tree.mkdir()
    agent = Agent(tree, tmp_path / "private")
    assert agent.run("git init").returncode != 0
    assert agent.run("rm -rf .git; mkdir .git").returncode != 0
    assert list((tree / ".git").iterdir()) == []
    assert subprocess.run(["git", "status"], cwd=tree, capture_output=True, check=False).returncode != 0


def test_a_project_below_the_top_of_its_repository(agent: Agent) -> None:
    top, agent.tree = agent.tree, agent.tree / "src"
    before = fingerprint(top / ".git")
    agent.do("echo b > b.txt; git add --all; git commit --quiet -m two")
    for order in ("git init .", "mkdir .git/objects", "touch ../x", "mv ../.git ../x"):
        assert agent.run(order).returncode != 0, order
    assert fingerprint(top / ".git") == before
    assert git(top, "status", "--porcelain") == "?? src/b.txt"


def test_submodules_can_be_committed_to_privately(agent: Agent, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "--quiet")
    git(library, "commit", "--quiet", "--allow-empty", "--message", "library")
    git(agent.tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "deep/library")
    git(agent.tree, "commit", "--quiet", "--message", "submodule")
    before = fingerprint(agent.tree / ".git")
    assert agent.do("git status --porcelain") == ""
    agent.do("cd deep/library && echo x > x && git add x && git commit --quiet -m more")
    assert agent.do("git -C deep/library log --format=%s") == "more\nlibrary"
    for order in ("mv deep x", "mv deep/library x", "rm deep/library/.git", "git -C deep/library config core.pager x"):
        assert agent.run(order).returncode != 0, order
    assert fingerprint(agent.tree / ".git") == before


def test_a_repository_in_the_project_can_be_read(agent: Agent) -> None:
    vendored = agent.tree / "vendor" / "lib"
    vendored.mkdir(parents=True)
    git(vendored, "init", "--quiet")
    (vendored / "a.c").write_text("a\n")
    git(vendored, "add", "--all")
    git(vendored, "commit", "--quiet", "--message", "vendored")
    before = fingerprint(vendored / ".git")
    assert (
        agent.do("cd vendor/lib && echo b >> a.c && git status --porcelain && git log --format=%s") == "M a.c\nvendored"
    )
    for order in ("mv vendor x", "echo x > vendor/lib/.git/config", "mv vendor/lib/.git x"):
        assert agent.run(order).returncode != 0, order
    assert fingerprint(vendored / ".git") == before
    assert repositories_made_since(agent.tree, agent.folder) == []
    agent.do("git init --quiet other; touch other/file; git init --quiet src; touch src/new")
    assert sorted(repositories_made_since(agent.tree, agent.folder)) == ["other", "src"]


def test_the_settings_of_the_user_are_without_passwords_and_commands(agent: Agent) -> None:
    for key, value in (
        ("remote.origin.url", "https://user:token@example.org/x.git"),
        ("http.extraHeader", "AUTHORIZATION: token"),
        ("core.hooksPath", ".husky"),
        ("core.autocrlf", "input"),
        ("filter.x.clean", 'sed "s/a/b/"\t#'),
        ("user.name", "Zoë"),
    ):
        git(agent.tree, "config", key, value)
    text = agent.do("git config --local --list")
    assert "token" not in text
    assert "hookspath" not in text
    assert agent.do("git config filter.x.clean") == 'sed "s/a/b/"\t#'
    assert agent.do("git config user.name") == "Zoë"
    assert agent.do("git config remote.origin.url") == "https://example.org/x.git"
    assert agent.do("git config core.autocrlf") == "input"


def test_what_git_reads_or_runs_of_the_tree_is_read_only(agent: Agent) -> None:
    """A config file or a filter in the tree is run outside with the next commit."""
    for name in (".gitconfig", "tools/clean.sh"):
        (agent.tree / name).parent.mkdir(exist_ok=True)
        (agent.tree / name).write_text("")
    git(agent.tree, "config", "include.path", "../.gitconfig")
    git(agent.tree, "config", "filter.x.clean", "sh ./tools/clean.sh %f")
    for order in ("echo x > .gitconfig", "rm .gitconfig", "echo x > tools/clean.sh", "mv tools x"):
        assert agent.run(order).returncode != 0, order
    agent.do("echo x > tools/other.sh")
    git(agent.tree, "config", "include.path", "../missing")
    with pytest.raises(SandboxError, match="which agents could make"):
        make_private_git(agent.tree, agent.folder.with_name("second"))


def test_a_link_instead_of_a_git_folder_is_refused(agent: Agent) -> None:
    (agent.tree / ".git").rename(agent.tree.parent / "elsewhere")
    (agent.tree / ".git").symlink_to(agent.tree.parent / "elsewhere")
    with pytest.raises(SandboxError, match="symbolic link"):
        make_private_git(agent.tree, agent.folder)


def test_repositories_of_every_kind(agent: Agent, tmp_path: Path) -> None:
    first = agent.tree
    (first / "b").write_text("b\n")
    git(first, "add", "--all")
    git(first, "commit", "--quiet", "--message", "two")
    git(tmp_path, "clone", "--quiet", "--shared", str(first), "shared")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{first}", "shallow")
    git(tmp_path, "clone", "--quiet", f"--separate-git-dir={tmp_path}/apart", str(first), "separate")
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "new")
    git(first, "checkout", "--quiet", "--detach")
    git(first, "pack-refs", "--all")
    for name, log in (("shared", "two\none"), ("shallow", "two"), ("separate", "two\none"), ("project", "two\none")):
        agent = Agent(tmp_path / name, tmp_path / f"private-{name}")
        before = git(agent.tree, "for-each-ref")
        assert agent.do("git status --porcelain") == "", name
        assert agent.do("git log --format=%s") == log
        assert agent.do("git for-each-ref") == before
        agent.do("echo x > x; git add x; git commit --quiet -m x; git fsck")
    agent = Agent(tmp_path / "new", tmp_path / "private-new")
    agent.do("echo x > x; git add x; git commit --quiet -m x; git log")


def test_a_half_made_folder_is_made_again_and_a_whole_one_is_kept(agent: Agent) -> None:
    (agent.folder / "clone").mkdir(parents=True)
    (agent.folder / "clone" / "HEAD").write_text("half")
    agent.do("git commit --quiet --allow-empty -m private")
    rows = json.loads((agent.folder / "mounts.json").read_text())
    assert any(row["path"] == str(agent.tree / ".git") for row in rows)
    make_private_git(agent.tree, agent.folder)
    assert agent.do("git log --format=%s") == "private\none"


def test_without_a_private_folder_git_only_reads(agent: Agent) -> None:
    need_bubblewrap()
    mounts = {mount.path: mount.access for mount in git_mounts(agent.tree, None)}
    assert mounts[agent.tree / ".git"] is Access.READ
