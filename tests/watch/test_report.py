"""The report in both forms, and what it may never do."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quintet.loop import journal
from quintet.roles import ANALYST, TESTER
from quintet.watch.report import markdown, write_report
from quintet.watch.summary import summarise
from tests.watch.events import at, failed_run, finished, sent, started, taken, verdict_of, write

EVIL = "<script>alert(1)</script> | `x` **b** </pre><img src=x onerror=alert(1)> \x1b[31m\u202e ```\nend"


class Tags(HTMLParser):
    """The tags and the attributes that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / ".tmp" / "20260102-030405-abcdef", failed_run())


def test_a_fail_says_what_to_do_next(folder: Path) -> None:
    text = markdown(summarise(folder))
    assert text.startswith("# FAIL after round 1\n")
    assert "## What to do next" in text
    assert "START_AGENT=programmer quintet run" in text.replace("\\_", "_")
    assert "without approval" in text


def test_a_pass_has_nothing_left_to_do(tmp_path: Path) -> None:
    events = [*started(), sent(1, TESTER), taken(2, TESTER), verdict_of(2, "PASS"), finished(3, "PASS")]
    assert "What to do next" not in markdown(summarise(write(tmp_path / ".tmp" / "r", events)))


def test_a_stopped_run_says_why_and_how_to_go_on(tmp_path: Path) -> None:
    events = [*started(), sent(1, ANALYST), at(2, journal.RunStopped(reason="interrupted by SIGTERM"))]
    text = markdown(summarise(write(tmp_path / ".tmp" / "r", events)))
    assert "Stopped in round 1" in text
    assert "interrupted by SIGTERM" in text


def test_the_page_needs_nothing_from_outside(folder: Path) -> None:
    page = write_report(folder)[1].read_text(encoding="utf-8")
    found = Tags(page)
    assert not found.tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    assert not {name for name in found.attributes if name.startswith("on")} | (found.attributes & {"src", "href"})
    assert "url(" not in page
    assert "prefers-color-scheme: dark" in page
    assert "<svg" in page


def test_whatever_an_agent_writes_stays_text(tmp_path: Path) -> None:
    events = [
        *started(),
        sent(1, TESTER),
        taken(2, TESTER, file="001-tester.md"),
        at(2, journal.TestJudged(round=1, verdict="FAIL", reason=EVIL)),
        at(2, journal.Warned(text=EVIL)),
        finished(3, "FAIL"),
    ]
    folder = write(tmp_path / ".tmp" / "r", events)
    (folder / "001-tester.md").write_text(EVIL, encoding="utf-8")
    written = write_report(folder)
    page = written[1].read_text(encoding="utf-8")
    assert not Tags(page).tags & {"script", "img"}
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    text = written[0].read_text(encoding="utf-8")
    outside = re.sub(r"^(`{4,})text\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script" not in outside
    assert "<img" not in outside
    table = next(line for line in outside.splitlines() if "FAIL" in line and line.startswith("|"))
    assert len(re.findall(r"(?<!\\)\|", table)) == 9


def test_an_agent_cannot_put_a_command_into_the_report(tmp_path: Path) -> None:
    folder = write(tmp_path / ".tmp" / "r", failed_run())
    evil = {"files": [{"path": "a", "kind": "new"}], "more": 0, "undo": ["rm -rf /"], "note": ""}
    (folder / "changes.json").write_text(json.dumps(evil))
    for at_end in (False, True):
        assert "rm -rf" not in write_report(folder, at_end=at_end)[0].read_text()


def test_reports_are_private(folder: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in write_report(folder)} == {0o600}


def test_a_name_in_the_journal_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret of the user's")
    events = [*started(), sent(1, TESTER), taken(2, TESTER, file="../../secret"), finished(3, "FAIL")]
    folder = write(tmp_path / ".tmp" / "r", events)
    (folder / "link.md").symlink_to(tmp_path / "secret")
    assert "a secret" not in write_report(folder)[1].read_text()


def test_an_empty_journal_has_a_report_too(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "journal.jsonl").write_text("")
    assert all(path.exists() for path in write_report(tmp_path / "r"))
