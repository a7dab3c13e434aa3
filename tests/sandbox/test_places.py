"""Which paths a sandbox shows, hides and lets write, on a machine of a test's own."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from quintet.layout import user_state_folder
from quintet.sandbox.mounts import Access, Mount, arrange
from quintet.sandbox.places import SandboxPlaces, Wishes, clear_mount_points
from tests.guard.projects import git


class Machine:
    """A home, a project and a place for what belongs to the run."""

    def __init__(self, root: Path) -> None:
        self.home, self.tree, self.scratch = root / "home", root / "project", root / "scratch"
        for folder in (self.home, self.tree, self.scratch):
            folder.mkdir()
        self.wishes, self.tmp, self.private = Wishes(), root / "role", root / "private"
        self.caches: Path | None = None
        for folder in (self.tmp, self.private):
            folder.mkdir()
        self.env: dict[str, str] = {"HOME": str(self.home)}

    def make(self, *names: str) -> None:
        """Make folders, and files where the name has a dot inside, in the home."""
        for name in names:
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x") if "." in path.name[1:] or name == ".netrc" else path.mkdir(exist_ok=True)

    def access(self) -> Mapping[Path, Access]:
        return {mount.path: mount.access for mount in self.mounts() if not mount.source}

    def mounts(self) -> list[Mount]:
        places = SandboxPlaces(
            self.tree, self.scratch, self.tmp, self.private, (".cache/cli",), self.caches, wishes=self.wishes
        )
        return arrange(places.mounts(self.env))

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


def test_the_home_is_another_folder_and_caches_are_shared(machine: Machine, tmp_path: Path) -> None:
    machine.make(".ssh", ".netrc", ".codex", ".cache/pip", "work")
    machine.caches = tmp_path / "caches"
    shown = {mount.path: (mount.access, mount.source) for mount in machine.mounts()}
    assert shown[machine.home] == (Access.WRITE, machine.private)
    assert shown[machine.home / ".cache"] == (Access.WRITE, machine.caches / ".cache")
    assert shown[machine.home / ".cache" / "cli"] == (Access.WRITE, machine.private / ".cache" / "cli")
    assert not [path for path in shown if machine.home in path.parents and path.name in (".ssh", ".codex", "work")]


def test_a_link_in_an_earlier_home_is_no_way_to_a_mount_point(machine: Machine, tmp_path: Path) -> None:
    machine.make("data")
    machine.wishes = Wishes(show=["~/data"])
    (machine.private / "data").symlink_to(tmp_path)
    clear_mount_points(machine.mounts())
    assert not (machine.private / "data").is_symlink()
    (machine.private / "other").symlink_to(tmp_path)
    clear_mount_points(machine.mounts())
    assert (machine.private / "other").is_symlink(), "what is in nobody's way stays"


def test_the_state_of_quintet_is_hidden_but_not_a_tree_in_it(machine: Machine) -> None:
    machine.tree = user_state_folder() / "worktrees" / "a"
    machine.tree.mkdir(parents=True)
    assert machine.of(user_state_folder() / "records") is Access.HIDDEN
    assert machine.of(user_state_folder() / "worktrees" / "b") is Access.HIDDEN
    assert machine.of(machine.tree) is Access.WRITE


def test_links_are_followed_to_what_they_name(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (machine.home / "shown").symlink_to(tmp_path / "secrets")
    (machine.home / "circle").symlink_to(machine.home / "circle")
    machine.wishes = Wishes(show=["~/shown", "~/circle"])
    assert machine.of(tmp_path / "secrets") is Access.READ
    links = {mount.path: mount.source for mount in machine.mounts() if mount.access is Access.LINK}
    assert links[machine.home / "shown"] == tmp_path / "secrets"


def test_the_users_wishes_come_before_what_every_sandbox_has(machine: Machine) -> None:
    machine.make("notes", "notes/public", "out")
    (machine.tree / "secret").mkdir()
    machine.wishes = Wishes(write=["~/out"], hide=["~/notes", "secret"], show=["~/notes/public"])
    home = machine.home
    assert machine.of(home / "out") is Access.WRITE
    assert machine.of(home / "notes") is Access.HIDDEN
    assert machine.of(home / "notes" / "public") is Access.READ
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


def test_what_variables_name_outside_of_the_home_is_hidden(machine: Machine, tmp_path: Path) -> None:
    folder, agent = tmp_path / "run", tmp_path / "agent.sock"
    folder.mkdir()
    agent.write_text("")
    machine.make(".config")
    machine.env |= {"XDG_RUNTIME_DIR": str(folder), "SSH_AUTH_SOCK": str(agent)}
    machine.env["XDG_CONFIG_HOME"] = str(machine.home / ".config")
    assert {machine.of(folder), machine.of(agent)} == {Access.HIDDEN}
    assert machine.home / ".config" not in machine.access(), "in a home of its own nothing has to be hidden"


def test_programs_below_the_folder_for_temporary_files_can_be_started(machine: Machine) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        tools = Path(name)
        (tools / "agent" / "bin").mkdir(parents=True)
        (tools / "agent" / "lib").mkdir()
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
