"""The pieces of the picture: figures, the chart, what git tells, the growing journal."""

import json
import os
import subprocess
import tracemalloc
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quintet.errors import RunError
from quintet.loop import journal
from quintet.loop.decide.state import State
from quintet.loop.record.journal_file import LONGEST_LINE, Journal
from quintet.loop.record.lock import directory_lock
from quintet.loop.record.state_file import save_state
from quintet.roles import ANALYST
from quintet.watch.report.markup import svg
from quintet.watch.runs.changes import Changes, FileChange, changes_now, changes_of, save_changes
from quintet.watch.runs.condensation import _explore_summary
from quintet.watch.runs.folders import JournalTail, find_run, has_process, read_run, read_text, run_folders
from quintet.watch.runs.formatting import clock, duration, money, printable, short_number
from quintet.watch.runs.model import Run, run_from_events
from quintet.watch.runs.terminal_status import find_server, terminal_statuses
from quintet.watch.runs.timeline import STOP_WIDTH, WIDTH, Scale, draw_timeline
from quintet.watch.runs.undo import undo
from tests.watch.events import START, at, failed_run, sent, started, write


@pytest.mark.parametrize(
    ("seconds", "words", "hands"),
    [(0, "0 s", "0:00"), (59.4, "59 s", "0:59"), (245, "4 min 05 s", "4:05"), (7650, "2 h 07 min", "2:07:30"),
     (3600, "1 h 00 min", "1:00:00"), (-3, "0 s", "0:00"), (100_000, "1 d 3 h", "27:46:40")],
)  # fmt: skip
def test_times(seconds: float, words: str, hands: str) -> None:
    assert duration(seconds) == words
    assert clock(seconds) == hands


def test_numbers() -> None:
    assert [short_number(number) for number in (0, 999, 1000, 9_940, 12_345, 1_500_000)] == [
        "0", "999", "1.0k", "9.9k", "12k", "1.5M",
    ]  # fmt: skip
    assert (money(12.5), money(0.01234)) == ("12.50", "0.0123")
    assert printable("a\x1b[2Jb\u202ec\td\ne") == "a�[2Jb�c\td\ne"


def test_the_chart_has_a_bar_for_each_turn_and_a_mark_for_each_verdict() -> None:
    picture = ElementTree.fromstring(svg(draw_timeline(run_from_events(failed_run()))))  # noqa: S314 - our own
    shapes = [item.get("class", "") for item in picture.iter()]
    assert [name for name in shapes if name.startswith("bar")] == ["bar work", "bar review", "bar work", "bar test"]
    assert [name for name in shapes if name.startswith("mark")] == ["mark again", "mark bad"]


def test_the_chart_of_nothing_and_of_a_run_without_an_end() -> None:
    ElementTree.fromstring(svg(draw_timeline(Run())))  # noqa: S314
    assert "bar work open" in svg(draw_timeline(run_from_events([*started(), sent(5, ANALYST)])))


def test_a_stop_takes_the_same_room_however_long_it_was() -> None:
    short, long = Scale(((0, 10), (20, 30))), Scale(((0, 10), (100_000, 100_010)))
    assert short.x(30) == pytest.approx(long.x(100_010))
    assert short.x(20) - short.x(10) == pytest.approx(STOP_WIDTH)
    assert long.x(200_000) <= WIDTH


def git(wd: Path, *words: str) -> None:
    identity = ["-c", "user.name=T", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *identity, *words], cwd=wd, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, Run]:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "old name.txt").write_text("a\nb\n")
    (tmp_path / "gone").write_text("x\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    return tmp_path, Run(id="run", start_commit=head.stdout.strip(), status="PASS")


def test_changed_new_and_deleted_files_with_unusual_names(repository: tuple[Path, Run]) -> None:
    wd, run = repository
    (wd / "old name.txt").write_text("a\nc\nd\n")
    (wd / "gone").unlink()
    (wd / "[id] ü.tsx").write_text("new\n")
    (wd / ".tmp").mkdir()
    (wd / ".tmp" / "mine").write_text("not a change")
    found = changes_now(wd, run)
    assert [(file.path, file.kind, file.added, file.removed) for file in found.files] == [
        ("[id] ü.tsx", "new", 1, 0),
        ("gone", "deleted", 0, 1),
        ("old name.txt", "changed", 2, 1),
    ]


def test_a_look_at_the_changes_changes_nothing_and_runs_no_hook(repository: tuple[Path, Run]) -> None:
    wd, run = repository
    (wd / "picture").write_bytes(b"\0\1")
    (wd / "other").write_bytes(b"\0\1")
    git(wd, "add", "--all")
    git(wd, "commit", "--quiet", "--message", "pictures")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=wd, check=True, capture_output=True, text=True)
    hook = wd / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{wd}/.git/hook-ran'\n")
    hook.chmod(0o755)
    (wd / "other").write_bytes(b"\0\2")
    for name in ("old name.txt", "picture", "other"):
        os.utime(wd / name, (1, 1))  # an editor has saved it again
    index = (wd / ".git/index").read_bytes()
    found = changes_now(wd, replace(run, start_commit=head.stdout.strip()))
    assert [(file.path, file.kind, file.added) for file in found.files] == [("other", "changed", None)]
    undo(wd, run, newest=True)
    assert (wd / ".git/index").read_bytes() == index
    assert not (wd / ".git/hook-ran").exists()


def test_no_repository_and_a_commit_that_is_not_there(tmp_path: Path, repository: tuple[Path, Run]) -> None:
    assert "not in a git repository" in changes_now(tmp_path, Run()).note
    assert "not in this repository" in changes_now(repository[0], Run(start_commit="0" * 40)).note
    assert "not in this repository" in changes_now(repository[0], Run(start_commit="--output=/tmp/x")).note


def test_runs_are_found_by_the_beginning_of_their_name(tmp_path: Path) -> None:
    for name in ("20260101-000000-aaaaaa", "20260102-000000-bbbbbb"):
        write(tmp_path / ".tmp" / name, started())
    (tmp_path / ".tmp" / "agent-responses").mkdir()
    assert [folder.name[-6:] for folder in run_folders(tmp_path)] == ["bbbbbb", "aaaaaa"]
    assert find_run(tmp_path, None).name.endswith("bbbbbb")
    assert find_run(tmp_path, "20260101").name.endswith("aaaaaa")
    with pytest.raises(RunError, match="2 runs begin with 2026"):
        find_run(tmp_path, "2026")
    with pytest.raises(RunError, match="no run 1999"):
        find_run(tmp_path, "1999")
    with pytest.raises(RunError, match="no runs here"):
        find_run(tmp_path / "elsewhere", None)


def test_a_growing_journal_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    tail = JournalTail(path)
    assert tail.read_new() == []
    lines = [event.model_dump_json().encode() + b"\n" for event in [*started(), sent(5, ANALYST)]]
    path.write_bytes(b"".join(lines)[:-20])
    assert len(tail.read_new()) == len(lines) - 1
    path.write_bytes(b"".join(lines))
    assert [event.event for event in tail.read_new()] == ["prompt_sent"]
    assert tail.read_new() == []
    # deleted by an agent, and begun anew
    path.write_bytes(at(9, journal.Warned(text="x")).model_dump_json().encode() + b"\n")
    assert [event.event for event in tail.read_new()] == ["warned"]
    assert tail.run.handoffs == ()


def test_texts_that_are_not_there(tmp_path: Path) -> None:
    assert read_text(tmp_path, "") == ""
    assert read_text(tmp_path, "nothing.md") == ""
    assert read_text(tmp_path, "a\0b") == ""
    (tmp_path / "bytes.md").write_bytes(b"a\xffb")
    assert read_text(tmp_path, "bytes.md") == "a�b"


def test_whether_a_run_is_at_work_is_the_locks_word(tmp_path: Path) -> None:
    folder = write(tmp_path / ".tmp" / "20260102-030405-abcdef", started())
    older = write(tmp_path / ".tmp" / "20260101-000000-aaaaaa", started())
    running = run_from_events(started())
    old = replace(running, id=older.name)
    assert not has_process(folder, running)
    (tmp_path / ".tmp" / "quintet.pid").write_text("1\n")
    assert not has_process(folder, running), "a process with that number may be anybody's"
    with directory_lock(tmp_path):
        assert has_process(folder, running), "before it has a state of its own, it is the newest"
        assert not has_process(older, old)
        save_state(State(run_id=older.name), tmp_path / ".tmp" / "quintet-state.json")
        assert has_process(older, old), "an older run that goes on"
        assert not has_process(folder, running)
        assert not has_process(older, replace(old, status="PASS"))
        (tmp_path / ".tmp" / "quintet-state.json").write_text("no state")
        assert has_process(folder, running)
    assert not has_process(folder, running)


def test_a_run_without_its_process_is_gone(tmp_path: Path) -> None:
    folder = write(tmp_path / ".tmp" / "20260102-030405-abcdef", [*started(), sent(5, ANALYST)])
    run = read_run(folder)
    assert (run.status, run.seconds(START.timestamp() + 9000)) == ("GONE", 5)
    assert run.current, "what it was waiting for is still known"
    with directory_lock(tmp_path):
        assert read_run(folder).status == "RUNNING"


@pytest.mark.parametrize(
    "word",
    [
        "",
        "[]",
        '{"url": 3}',
        '{"url": "http://evil.example:80"}',
        '{"url": "https://127.0.0.1:1"}',
        '{"url": "http://["}',
    ],
)
def test_a_word_of_a_server_that_is_not_on_this_machine_is_not_believed(tmp_path: Path, word: str) -> None:
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "server.json").write_text(word)
    assert find_server(tmp_path) is None


def test_the_word_of_a_server(tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "server.json").write_text('{"url": "http://127.0.0.1:9", "token": "t"}')
    found = find_server(tmp_path)
    assert found
    assert (found.url, found.token) == ("http://127.0.0.1:9", "t")


def test_a_terminal_of_the_journal_that_is_no_address_has_no_status(tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "server.json").write_text('{"url": "http://127.0.0.1:9"}')
    assert terminal_statuses(tmp_path, Run(terminals={"tester": ("\x00\n/../", "codex")})) == {}


@pytest.mark.parametrize(
    "files",
    [[{"path": None, "kind": "new"}], [{"path": "a", "kind": 3}], [{"path": "a", "kind": "new", "added": "<b>"}],
     [3], 3, [{"path": "a", "kind": "new", "added": -1}], [{"path": "a", "kind": "new", "removed": 10**400}]],
)  # fmt: skip
def test_noted_changes_that_make_no_sense_are_looked_up_anew(tmp_path: Path, files: object) -> None:
    folder = tmp_path / ".tmp" / "r"
    folder.mkdir(parents=True)
    (folder / "changes.json").write_text(json.dumps({"files": files, "more": 0, "note": ""}))
    assert changes_of(folder, Run(status="PASS")) == changes_now(tmp_path, Run())


def test_changes_are_kept_and_read_again(tmp_path: Path) -> None:
    found = Changes((FileChange("a b", "new"), FileChange("c", "changed", 3, 0)), more=2)
    save_changes(tmp_path, found)
    assert changes_of(tmp_path, Run(status="PASS")) == found
    assert changes_of(tmp_path, Run()) == changes_now(tmp_path, Run()), "a run that was resumed has changed more since"


def test_the_explore_summary_of_a_prompt() -> None:
    assert _explore_summary("a\nExplore summary:\none\ntwo\n\nRound 1, cycle 2\n\nRound 3") == "one\ntwo"
    assert _explore_summary("Explore summary:\none\nRound 12") == "one"
    assert _explore_summary("Explore summary:\none\nRounds") == ""
    assert _explore_summary("The Explore summary:\none\nRound 1") == ""
    assert _explore_summary("Explore summary:\n\nRound 1") == ""


@pytest.mark.parametrize("name", ["a\nline", "20260101-000000-aaaaaa\x1b[31m", "..x", "-x"])
def test_a_folder_whose_name_is_no_run_s_is_not_listed(tmp_path: Path, name: str) -> None:
    """Its name would be printed: it could hold control characters, or look like another line."""
    (tmp_path / ".tmp" / name).mkdir(parents=True)
    (tmp_path / ".tmp" / name / "journal.jsonl").touch()
    assert run_folders(tmp_path) == []


def test_a_line_that_is_too_long_for_an_event_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path).write(journal.Warned(text="before"))
    os.truncate(path, 100_000_000)
    Journal(path).write(journal.Warned(text="behind"))
    tracemalloc.start()
    try:
        assert [event.text for event in Journal(path).read() if isinstance(event, journal.Warned)] == [
            "before",
            "behind",
        ]
        tail = JournalTail(path)
        assert [event.text for event in tail.read_new() if isinstance(event, journal.Warned)] == ["before", "behind"]
        assert tail.read_new() == []
        assert tracemalloc.get_traced_memory()[1] < 6 * LONGEST_LINE
    finally:
        tracemalloc.stop()
