"""The screen after a PASS: it fits 80 columns and 24 lines, and every word of it is true."""

import subprocess
from dataclasses import replace
from pathlib import Path

from quintet.loop import journal
from quintet.loop.journal import Event
from quintet.roles import ANALYST, TESTER
from quintet.watch.console.pass_screen import pass_screen
from quintet.watch.runs.changes import Changes, FileChange
from quintet.watch.runs.summary import Summary, summarise
from tests.watch.events import at, sent, started, taken, verdict_of, write

RUN = "20260102-030405-abcdef"


def passed(*more: Event, cleaned_up: bool = False) -> list[Event]:
    end = journal.RunFinished(status="PASS", round=1, cleaned_up=cleaned_up)
    turns = [sent(10, ANALYST), taken(20, ANALYST, tokens=9000), sent(20, TESTER), taken(50, TESTER)]
    return [*started(), *turns, verdict_of(50, "PASS"), *more, at(60, end)]


def screen(tmp_path: Path, events: list[Event], **changes: object) -> str:
    summary: Summary = summarise(write(tmp_path / ".tmp" / RUN, events))
    summary = replace(summary, **changes)  # type: ignore[arg-type]
    text = pass_screen(summary, summary.folder / "report.html", cwd=tmp_path)
    lines = text.split("\n")
    assert len(lines) <= 22, "with a prompt below it, it fits 24 lines"
    assert max(map(len, lines)) <= 80
    return text


def test_it_says_what_changed(tmp_path: Path) -> None:
    files = [FileChange(f"src/module_{number}.py", "changed", 3, 1) for number in range(9)]
    text = screen(tmp_path, passed(), changes=Changes(tuple(files)), title="word " * 40)
    assert "9 files changed, 27 lines added, 9 removed; not committed:" in text
    assert "  src/module_0.py  changed  +3 -1" in text
    assert "and 5 more files" in text
    one = screen(tmp_path, passed(), changes=Changes((FileChange("a.py", "new", 1, 0),)))
    assert "1 file changed, 1 line added, 0 removed" in one
    assert "No file was changed." in screen(tmp_path, passed(), changes=Changes())


def test_it_says_what_the_result_rests_on(tmp_path: Path) -> None:
    assert "The PASS rests on the tester's word alone." in screen(tmp_path, passed())
    block = at(54, journal.Verified(round=1, command="verify block 1", exit_code=0))
    verified = at(55, journal.Verified(round=1, command="make test", exit_code=0))
    text = " ".join(screen(tmp_path, passed(block, verified)).split())
    assert "what Quintet ran itself: verify block 1 (exit code 0), make test (exit code 0)" in text
    assert "word alone" not in text
    long = at(55, journal.Verified(round=1, command="make test " * 900, exit_code=0))
    assert "make test make" in screen(tmp_path, passed(long))
    used_up = at(52, journal.ReviewsUsedUp(phase="analyst", round=1, cycles=3))
    assert "1 phase continued without an approved review" in screen(tmp_path, passed(used_up))
    edit = journal.GuardedChange(path="a.py", change="changed")
    undone = at(50, journal.GuardViolation(step="1-1-tester", role="tester", paths=(edit,), undone=True, serious=True))
    text = " ".join(screen(tmp_path, passed(undone, used_up)).split())
    assert "1 phase continued without an approved review; in 1 turn a role changed what it may not change" in text
    assert "In 1 turn a role changed what it may not change, which was undone" in screen(tmp_path, passed(undone))
    stray = journal.GuardedChange(path="README.md in your checkout", change="changed")
    told = at(50, journal.GuardViolation(step="1-1-tester", role="tester", outside=(stray,)))
    text = " ".join(screen(tmp_path, passed(told)).split())
    assert "In 1 turn more changed than the run's own files (changed README.md in your checkout), by" in text


def test_it_says_what_still_runs_and_what_ends_it(tmp_path: Path) -> None:
    assert f"Still running: 5 agents, idle in their terminals. This ends them:\n  quintet stop {RUN}" in screen(
        tmp_path, passed()
    )
    assert "None of its agents is still running." in screen(tmp_path, passed(cleaned_up=True))


def test_it_says_what_to_do_next(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch", "main")
    git("-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "--allow-empty", "--message", "Begin")
    git("switch", "--quiet", "--create", "work")
    (tmp_path / "new.py").write_text("x")
    found = Changes((FileChange("new.py", "new"),))
    text = screen(tmp_path, passed(), changes=found)
    assert f"quintet diff {RUN}" in text
    assert "git add --all && git commit" in text
    assert "git switch main && git merge work" in text
    assert f".tmp/{RUN}/report.html" in text
    committed = screen(tmp_path, passed(at(55, journal.Noted(text="committed as 0123456789abcdef"))), changes=found)
    assert "committed as 0123456789ab" in committed
    assert "git commit" not in committed


def test_a_task_that_is_no_utf8_can_be_printed(tmp_path: Path) -> None:
    assert "caf\N{REPLACEMENT CHARACTER}" in screen(
        tmp_path, passed(), title=b"caf\xe9".decode("utf-8", "surrogateescape")
    )
