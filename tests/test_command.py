"""Commands of the user and of tools: bounded, and nothing left behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quintet import command
from tests.eventually import eventually


def test_output_and_exit_code(tmp_path: Path) -> None:
    outcome = command.run("echo out; echo err >&2; exit 3", tmp_path, 30)
    assert outcome == command.Outcome(3, "out\nerr\n")
    assert outcome.last_line == "err"


def test_a_list_is_no_shell_line(tmp_path: Path) -> None:
    assert command.run(["echo", "$HOME; rm x"], tmp_path, 30).output == "$HOME; rm x\n"


def test_it_runs_in_the_directory_with_the_variables(tmp_path: Path) -> None:
    assert command.run('echo "$PWD $X"', tmp_path, 30, {"X": "y"}).output == f"{tmp_path} y\n"


def test_what_is_not_there(tmp_path: Path) -> None:
    assert command.run(["no-such-program"], tmp_path, 30).exit_code == command.NOT_FOUND
    assert command.run("no-such-program", tmp_path, 30).exit_code == command.NOT_FOUND
    assert command.run(["true"], tmp_path / "nowhere", 30).exit_code == command.NOT_FOUND


def test_no_room_for_its_output_is_an_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert command.run("true", tmp_path, 30).exit_code == command.NOT_FOUND


def test_it_does_not_wait_for_input(tmp_path: Path) -> None:
    assert command.run("cat", tmp_path, 30) == command.Outcome(0, "")


def test_too_slow_is_ended_with_all_its_children(tmp_path: Path) -> None:
    outcome = command.run("echo begun; sleep 600 & echo $! > pid; wait", tmp_path, 0.5)
    assert outcome.exit_code == command.TIMED_OUT
    assert "begun" in outcome.output
    assert "did not end within 0.5 s" in outcome.output
    gone(int((tmp_path / "pid").read_text()))


def test_what_a_command_leaves_running_is_ended(tmp_path: Path) -> None:
    outcome = command.run("sleep 600 & echo $! > pid", tmp_path, 30)
    assert outcome.exit_code == 0
    gone(int((tmp_path / "pid").read_text()))


def test_a_daemon_ends_with_a_supervised_command(tmp_path: Path) -> None:
    daemon = "(setsid sh -c '(setsid sleep 600 & echo $! > pid)' &)\nuntil test -s pid; do sleep 0.01; done\n"
    assert command.run(f"{daemon}exit 3", tmp_path, 30, supervised=True) == command.Outcome(3, "")
    gone(int((tmp_path / "pid").read_text()))
    slow = command.run(f"rm pid\n{daemon}sleep 600", tmp_path, 0.5, supervised=True)
    assert slow.exit_code == command.TIMED_OUT
    gone(int((tmp_path / "pid").read_text()))


def test_a_supervised_command_ends_as_it_would_alone(tmp_path: Path) -> None:
    for line in ("exit 7", "kill -9 $$", "no-such-program", "kill -TERM $$"):
        alone = command.run(line, tmp_path, 30)
        assert command.run(line, tmp_path, 30, supervised=True).exit_code == alone.exit_code


def gone(pid: int) -> None:
    def dead() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
        except FileNotFoundError:
            return True

    eventually(dead if Path("/proc/self").exists() else lambda: os.system(f"kill -0 {pid}") != 0, "its end")  # noqa: S605


def test_long_output_keeps_both_ends(tmp_path: Path) -> None:
    outcome = command.run("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last", tmp_path, 60)
    assert outcome.output.startswith("first\n")
    assert outcome.output.endswith("last\n")
    assert "bytes left out" in outcome.output
    assert len(outcome.output) < command.LONGEST_OUTPUT + 100


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    assert command.run("printf 'caf\\351'", tmp_path, 30).output == "caf\ufffd"


def test_the_last_line_of_nothing() -> None:
    assert command.Outcome(5, " \n").last_line == "exit code 5"


def test_a_signal_during_the_start_leaves_no_process(tmp_path: Path) -> None:
    """The shield lets it through only when somebody knows what to end."""

    @contextmanager
    def interrupted() -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command.run("echo $$ > pid; exec sleep 600", tmp_path, 60, shield=interrupted)
    text = (tmp_path / "pid").read_text().strip() if (tmp_path / "pid").exists() else ""
    assert not text or not Path(f"/proc/{text}").exists()


def test_one_that_prints_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MOST_OUTPUT", 5_000_000)
    outcome = command.run("yes", tmp_path, 3600)
    assert outcome.exit_code == command.TOO_MUCH
    assert outcome.last_line == "(ended: more than 5,000,000 bytes)"
    assert len(outcome.output) < 2 * command.LONGEST_OUTPUT


def test_without_pidfd_a_command_is_waited_for_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert command.run("exit 3", tmp_path, 10).exit_code == 3
    assert command.run("sleep 60", tmp_path, 0.1).exit_code == command.TIMED_OUT
