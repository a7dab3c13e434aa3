"""Which paths a sandbox shows, hides and lets write, on a machine of a test's own."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from quintet.layout import user_state_folder
from quintet.sandbox.mounts import Access, arrange
from quintet.sandbox.places import SandboxPlaces, Wishes
from tests.guard.projects import git


class Machine:
    """A home, a project and a place for what belongs to the run."""

    def __init__(self, root: Path) -> None:
        self.home, self.tree, self.scratch = root / "home", root / "project", root / "scratch"
        for folder in (self.home, self.tree, self.scratch):
            folder.mkdir()
        self.wishes, self.homes, self.tmp = Wishes(), ("~/.codex",), root / "role"
        self.tmp.mkdir()
        self.env: dict[str, str] = {"HOME": str(self.home)}

    def make(self, *names: str) -> None:
        """Make folders, and files where the name has a dot inside, in the home."""
        for name in names:
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x") if "." in path.name[1:] or name == ".netrc" else path.mkdir(exist_ok=True)

    def access(self) -> Mapping[Path, Access]:
        places = SandboxPlaces(
            self.tree, self.scratch, self.tmp, self.homes, ("~/.claude", "~/.claude.json"), wishes=self.wishes
        )
        return {mount.path: mount.access for mount in arrange(places.mounts(self.env)) if not mount.source}

    def of(self, path: Path) -> Access:
        found = self.access()
        return next((found[up] for up in (path, *path.parents) if up in found), Access.READ)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_is_not_there_is_neither_hidden_nor_shown(machine: Machine) -> None:
    assert not [path for path in machine.access() if machine.home in path.parents]
    machine.wishes = Wishes(write=["/no/such/path"], hide=["~/nothing"], show=["neither"])
    missing = [path for path in machine.access() if not path.exists()]
    assert missing == [machine.tree / ".git"], "nobody can make one"


def test_secrets_are_hidden_homes_and_caches_written(machine: Machine) -> None:
    machine.make(".ssh", ".netrc", ".codex", ".claude", ".claude.json", ".cache/pip", ".cache/mozilla", "work")
    home = machine.home
    hidden = (".ssh", ".netrc", ".claude", ".claude.json", ".cache/mozilla")
    assert [name for name in hidden if machine.of(home / name) is not Access.HIDDEN] == []
    assert {machine.of(home / name) for name in (".codex", ".cache", ".cache/pip")} == {Access.WRITE}
    assert {machine.of(home), machine.of(home / "work"), machine.of(home / ".bashrc")} == {Access.READ}


def test_the_state_of_quintet_is_hidden_but_not_a_tree_in_it(machine: Machine) -> None:
    machine.tree = user_state_folder() / "worktrees" / "a"
    machine.tree.mkdir(parents=True)
    assert machine.of(user_state_folder() / "records") is Access.HIDDEN
    assert machine.of(user_state_folder() / "worktrees" / "b") is Access.HIDDEN
    assert machine.of(machine.tree) is Access.WRITE


def test_links_are_followed_to_what_they_name(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (machine.home / ".ssh").symlink_to(tmp_path / "secrets")
    (machine.home / ".aws").symlink_to(tmp_path / "nowhere")
    (machine.home / ".kube").symlink_to(machine.home / ".kube")
    assert machine.of(tmp_path / "secrets") is Access.HIDDEN
    assert machine.home / ".ssh" not in machine.access()
    linked = tmp_path / "linked"
    linked.symlink_to(machine.home)
    machine.env["HOME"] = str(linked)
    assert machine.of(tmp_path / "secrets") is Access.HIDDEN


def test_the_users_wishes_come_before_what_every_sandbox_has(machine: Machine) -> None:
    machine.make(".ssh", ".ssh/known.hosts", ".aws", ".cache", "notes", "out")
    (machine.tree / "secret").mkdir()
    machine.wishes = Wishes(
        write=["~/out"], hide=["~/notes", "secret", "~/.cache"], show=["~/.ssh/known.hosts", "~/.aws"]
    )
    home = machine.home
    assert machine.of(home / "out") is Access.WRITE
    assert {machine.of(home / "notes"), machine.of(home / ".cache"), machine.of(home / ".ssh")} == {Access.HIDDEN}
    assert {machine.of(home / ".ssh/known.hosts"), machine.of(home / ".aws")} == {Access.READ}
    assert machine.of(machine.tree / "secret") is Access.HIDDEN


def test_the_tree_stays_writable_whatever_is_hidden_around_it(machine: Machine) -> None:
    machine.wishes = Wishes(hide=[str(machine.tree), str(machine.tree.parent)])
    assert machine.of(machine.tree) is Access.WRITE
    assert machine.of(machine.tree.parent) is Access.HIDDEN


def test_without_a_private_folder_the_repository_can_only_be_read(machine: Machine) -> None:
    git(machine.tree, "init", "--quiet")
    top, machine.tree = machine.tree, machine.tree / "part"
    machine.tree.mkdir()
    assert machine.of(top / "other.txt") is Access.READ
    assert machine.of(top / ".git" / "index.lock") is Access.READ
    assert machine.of(machine.tree / ".git" / "config") is Access.HIDDEN
    assert machine.of(machine.tree / "file") is Access.WRITE


def test_the_folder_for_sockets_is_empty_but_can_be_used(machine: Machine, tmp_path: Path) -> None:
    folder, agent = tmp_path / "run", tmp_path / "agent.sock"
    folder.mkdir()
    agent.write_text("")
    machine.env |= {"XDG_RUNTIME_DIR": str(folder), "SSH_AUTH_SOCK": str(agent)}
    assert machine.of(folder) is Access.FRESH
    assert machine.of(agent) is Access.HIDDEN


def test_programs_below_the_folder_for_temporary_files_can_be_started(machine: Machine) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        tools = Path(name)
        (tools / "agent" / "bin").mkdir(parents=True)
        (tools / "plain").mkdir()
        machine.tree = tools / "project"
        (machine.tree / ".venv" / "bin").mkdir(parents=True)
        folders = ("agent/bin", "plain", "missing", "project/.venv/bin")
        machine.env["PATH"] = ":".join(["relative", "/usr/bin", *(f"{tools}/{folder}" for folder in folders)])
        shown = machine.access()
        assert shown[tools / "agent"] is Access.READ  # where the libraries of its programs are
        assert shown[tools / "plain"] is Access.READ
        assert tools not in shown
        assert tools / "missing" not in shown
        assert machine.of(machine.tree / ".venv") is Access.WRITE
