"""What is said where no sandbox can be made: what is missing, and how to get it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quintet.errors import SandboxError
from quintet.sandbox.bubblewrap import explain, find_bubblewrap
from quintet.sandbox.mounts import Access, Mount, bwrap_arguments
from tests.sandbox.need import need_bubblewrap

FORBIDDEN = "bwrap: No permissions to create new namespace"


def put_program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_one_of_this_machine_is_tried_out() -> None:
    need_bubblewrap()
    found = find_bubblewrap()
    assert found.program == shutil.which("bwrap")
    assert found.version[0].isdigit()


@pytest.mark.parametrize(
    ("manager", "advice"),
    [("apt-get", "apt-get install bubblewrap"), ("apk", "apk add bubblewrap"), ("", "install bubblewrap")],
)
def test_a_missing_one_is_named_with_the_package_manager_at_hand(
    manager: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if manager:
        put_program(tmp_path, manager, "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError) as caught:
        find_bubblewrap()
    assert caught.value.fix == advice
    assert str(caught.value) == f"SANDBOX=on: bubblewrap is not installed: bwrap is not on the PATH; {advice}"


def test_one_that_cannot_make_a_sandbox_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_program(
        tmp_path, "bwrap", f'test "$1" = --version && echo bubblewrap 0.8.0 && exit\necho "{FORBIDDEN}" >&2; exit 1'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError, match=FORBIDDEN):
        find_bubblewrap()


def test_one_that_needs_a_user_namespace_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'case "$1" in --version) echo bubblewrap 1;; --unshare-user) exit 0;; *) exit 1;; esac'
    put_program(tmp_path, "bwrap", script)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert find_bubblewrap().flags == ("--unshare-user",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user/max_user_namespaces", "0"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ],
)
def test_the_setting_of_the_kernel_that_forbids_it_is_named(name: str, value: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(f"{value}\n")
    found, fix = explain(FORBIDDEN, tmp_path)
    assert found == f"the kernel forbids user namespaces ({name.replace('/', '.')} is {value}): {FORBIDDEN}"
    assert fix.startswith(f"as root: sysctl {name.replace('/', '.')}=")


def test_a_container_is_told_of_where_no_setting_forbids_it(tmp_path: Path) -> None:
    assert "container" in explain(FORBIDDEN, tmp_path)[1]
    assert "masked /proc" in explain("bwrap: Can't mount proc on /newroot/proc", tmp_path)[0]


def test_another_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxError, match="it needs Linux"):
        find_bubblewrap()


@pytest.mark.skipif(os.getuid() != 0, reason="all other tests of sandboxes are those of an ordinary user then")
def test_an_ordinary_user_can_make_the_same_sandbox_as_root() -> None:
    need_bubblewrap()
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    wanted = [Mount(Path("/srv"), Access.HIDDEN), Mount(Path("/var/tmp"), Access.FRESH)]
    words = bwrap_arguments(wanted, Path("/"), is_root=False)
    script = "touch /var/tmp/x && ! touch /srv/x && test $(id -u) = 65534 && test $$ -lt 10"
    done = subprocess.run([*nobody, "bwrap", *words, "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
