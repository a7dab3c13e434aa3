"""The mounts of a sandbox: their order, what is left out, and the words that bubblewrap gets."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as some

from quintet.sandbox.mounts import Access, Mount, arrange, bwrap_arguments

READ, WRITE, HIDDEN, FRESH = Access.READ, Access.WRITE, Access.HIDDEN, Access.FRESH


def mount(path: str, access: Access, source: str = "", *, is_file: bool = False) -> Mount:
    return Mount(Path(path), access, Path(source) if source else None, is_file)


def shown(wanted: list[Mount]) -> list[tuple[str, Access]]:
    return [(str(one.path), one.access) for one in arrange(wanted)]


def test_a_folder_comes_before_what_is_in_it() -> None:
    wanted = [mount("/home/u/.ssh", HIDDEN), mount("/home/u", WRITE), mount("/home/u/.ssh/known_hosts", READ)]
    assert shown(wanted) == [("/home/u", WRITE), ("/home/u/.ssh", HIDDEN), ("/home/u/.ssh/known_hosts", READ)]


def test_the_nearest_mount_decides_whatever_was_named_first() -> None:
    state, tree = mount("/state", HIDDEN), mount("/state/worktrees/a", WRITE)
    assert shown([tree, state]) == shown([state, tree]) == [("/state", HIDDEN), ("/state/worktrees/a", WRITE)]


def test_of_two_for_one_path_the_later_one_counts() -> None:
    assert shown([mount("/a", HIDDEN), mount("/a", WRITE)]) == [("/a", WRITE)]


def test_what_changes_nothing_is_left_out() -> None:
    wanted = [
        mount("/etc", READ),
        mount("/p", WRITE),
        mount("/p/.git", WRITE),
        mount("/h", HIDDEN),
        mount("/h/s", HIDDEN),
    ]
    assert shown(wanted) == [("/h", HIDDEN), ("/p", WRITE)]
    below_another_folder = [mount("/tmp", WRITE, "/own"), mount("/tmp/project", WRITE)]
    assert len(arrange(below_another_folder)) == 2


def test_names_that_begin_alike_are_not_in_each_other() -> None:
    assert shown([mount("/a/b", WRITE), mount("/a/b-c", WRITE)]) == [("/a/b", WRITE), ("/a/b-c", WRITE)]


def test_the_words_for_each_kind() -> None:
    wanted = [
        mount("/p", WRITE),
        mount("/p/.tmp", WRITE, "/own"),
        mount("/p/.git/config", READ),
        mount("/s", HIDDEN),
        mount("/f", HIDDEN, is_file=True),
        mount("/run/user/1", FRESH),
        mount("/dev/kvm", WRITE, is_file=True),
    ]
    words = " ".join(bwrap_arguments(wanted, Path("/p")))
    assert words == (
        "--die-with-parent --unshare-pid --unshare-ipc --ro-bind / / --dev /dev --proc /proc "
        "--ro-bind /proc/sys /proc/sys "
        "--dev-bind /dev/kvm /dev/kvm --ro-bind /dev/null /f --bind /p /p --ro-bind /p/.git/config /p/.git/config "
        "--bind /own /p/.tmp --tmpfs /run/user/1 --tmpfs /s --remount-ro /s --setenv TMPDIR /tmp --chdir /p"
    )


def test_root_keeps_only_what_files_of_others_need() -> None:
    words = bwrap_arguments([], Path("/"), is_root=True)
    assert words[words.index("--cap-drop") + 1] == "ALL"
    added = {words[at + 1] for at, word in enumerate(words) if word == "--cap-add"}
    assert "CAP_DAC_OVERRIDE" in added
    assert not added & {"CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", "CAP_MKNOD", "CAP_SYS_CHROOT"}


def test_without_a_network() -> None:
    assert "--unshare-net" in bwrap_arguments([], Path("/"), network=False)
    assert "--unshare-net" not in bwrap_arguments([], Path("/"))


names = some.lists(some.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(some.lists(some.builds(mount, names, some.sampled_from([READ, WRITE, HIDDEN, FRESH]))))
def test_every_path_gets_the_access_of_the_nearest_wish(wanted: list[Mount]) -> None:
    made = arrange(wanted)
    assert all(first.path not in second.path.parents for second, first in pairwise(made))
    by_path = {one.path: one.access for one in wanted}
    for one in wanted:
        for path in (one.path, one.path / "x"):
            asked = next((by_path[up] for up in (path, *path.parents) if up in by_path), READ)
            effective = {one.path: one.access for one in made}
            assert next((effective[up] for up in (path, *path.parents) if up in effective), READ) is asked
