"""The report in both forms, and what it may never do."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quintet.api.models import TokenCount
from quintet.loop import journal
from quintet.loop.record.lock import directory_lock
from quintet.roles import ANALYST, TESTER
from quintet.watch.report.markup import Markup, element, join
from quintet.watch.report.report_markdown import report_markdown
from quintet.watch.report.timeline_text import text_timeline
from quintet.watch.report.write_report import write_report
from quintet.watch.runs.diff import Diff, save_diff
from quintet.watch.runs.folders import read_run
from quintet.watch.runs.model import Run
from quintet.watch.runs.patches import MOST_OF_FILE
from quintet.watch.runs.summary import summarise
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
    text = report_markdown(summarise(folder))
    assert text.startswith("# FAIL after round 1\n")
    assert "## What to do next" in text
    assert "`START_AGENT=programmer PROMPT_FILE=task.md quintet run`" in text
    assert "`quintet attach programmer`" in text
    assert "without an approved review" in text


def test_a_pass_has_nothing_left_to_do(tmp_path: Path) -> None:
    events = [*started(), sent(1, TESTER), taken(2, TESTER), verdict_of(2, "PASS"), finished(3, "PASS")]
    assert "What to do next" not in report_markdown(summarise(write(tmp_path / ".tmp" / "r", events)))


def test_a_stopped_run_says_why_and_how_to_go_on(tmp_path: Path) -> None:
    events = [*started(), sent(1, ANALYST), at(2, journal.RunStopped(reason="interrupted by SIGTERM"))]
    text = report_markdown(summarise(write(tmp_path / ".tmp" / "r", events)))
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
    assert len(re.findall(r"(?<!\\)\|", table)) == 10


def test_the_diff_has_short_files_unfolded_and_long_ones_folded(tmp_path: Path) -> None:
    long = b"".join(b"+%d\n" % number for number in range(MOST_OF_FILE + 20))
    patch = (
        "diff --git a/évil b/évil\n--- a/évil\n+++ b/évil\n@@ -7 +7 @@ def f():\n-old\n"
        f"+{EVIL.partition(chr(10))[0]}\n"
        "diff --git a/<b>.png b/<b>.png\nnew file mode 100644\nBinary files /dev/null and b/<b>.png differ\n"
        "diff --git a/long b/long\nnew file mode 100644\n--- /dev/null\n+++ b/long\n@@ -0,0 +1,1020 @@\n"
    ).encode() + long
    folder = write(tmp_path / ".tmp" / "r", [*started(), finished(1, "PASS")])
    save_diff(folder, Diff(patch, "Left out: <i>."))
    text, page = (path.read_text(encoding="utf-8") for path in write_report(folder))
    assert not Tags(page).tags & {"script", "img", "b", "i"}
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "<p>Left out: &lt;i&gt;.</p>" in page
    details = re.findall(r'<details class="file"( open="")?><summary><span class="name">(.*?)</span>', page)
    assert details == [(' open=""', "évil"), ("", "long")]
    assert '<tr class="removed"><td>7</td><td></td><td>-old</td></tr>' in page
    assert '<tr class="added"><td></td><td>7</td><td>+&lt;script&gt;' in page
    assert '<p class="file"><span class="name">&lt;b&gt;.png</span><span class="what">new, not shown' in page
    assert page.count('<tr class="added">') == 1 + MOST_OF_FILE - 1
    assert "21 more lines. All of it: <code>quintet diff 20260102-030405-abcdef</code>" in page
    assert "long" not in text, "the report in Markdown has the list of files alone"


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


def test_commands_and_paths_are_not_escaped_within_code(tmp_path: Path) -> None:
    wd = tmp_path / "my_project `x` *y*"
    first = journal.RunStarted(run_id="r_1", wd=str(wd), start_agent=ANALYST.name)
    stop = journal.RunStopped(reason="a_b *c* `d`", max_tokens=10)
    text = report_markdown(summarise(write(wd / ".tmp" / "r_1", [at(0, first), *started()[1:], at(2, stop)])))
    assert f"Run `r_1` in `` {wd} ``" in text.replace("``" + str(wd) + "``", f"`` {wd} ``")
    assert "`MAX_TOKENS=20 quintet run`" in text
    assert r"a\_b \*c\* \`d\`" in text, "words are escaped as before"


def test_the_timeline_in_characters(folder: Path) -> None:
    text = report_markdown(summarise(folder))
    lines = text.split("## Timeline\n\n```text\n")[1].split("\n```")[0].split("\n")
    assert lines[0].strip() == "round 1"
    names = [line[:17].strip() for line in lines[1:6]]
    assert names == ["analyst", "peer analyst", "programmer", "peer programmer", "tester"]
    assert {len(line) for line in lines[1:6]} == {17 + 72}
    assert lines[1].count("█") in (14, 15), "10 of 51 seconds"
    assert lines[2].rstrip("·").endswith("▓↺")
    assert set(lines[4][17:]) == {"·"}
    assert "✗" in lines[5]
    assert lines[6].endswith("51 s at work")


def test_a_stop_and_the_shortest_turns_have_their_place_in_the_timeline(tmp_path: Path) -> None:
    resumed = at(90_000, journal.RunResumed(run_id="r", step=""))
    stopped = at(100, journal.RunStopped(reason="x"))
    events = [*started(), sent(1, ANALYST), taken(1.01, ANALYST), sent(2, TESTER), stopped, resumed]
    rows = text_timeline(read_run(write(tmp_path / ".tmp" / "r", [*events, taken(90_100, TESTER)])))
    assert rows[1].count("█") == 1
    assert "┊" in rows[5]
    assert text_timeline(Run())[1].count("·") == 72


def test_evidence_is_what_the_verdict_rests_on(tmp_path: Path) -> None:
    verified = at(3, journal.Verified(round=1, command="make check", exit_code=2, file="002-verify.md"))
    events = [*started(), sent(1, TESTER), taken(2, TESTER, file="001-tester.md"), verdict_of(2, "PASS"), verified]
    folder = write(tmp_path / ".tmp" / "r", [*events, finished(4, "FAIL")])
    (folder / "001-tester.md").write_text("RESULT: PASS\nall is well")
    (folder / "002-verify.md").write_text("$ make check\n2 tests failed\n")
    text, page = (path.read_text(encoding="utf-8") for path in write_report(folder))
    assert "### Round 1: ✗ FAIL, the output of make check, after the tester's PASS" in text
    assert (
        text.index("2 tests failed")
        < text.index("### Round 1: ✓ PASS, the tester's report")
        < text.index("all is well")
    )
    assert "2 tests failed" in page
    assert "/002-verify.md`" in text.split("## Timeline")[0], "what to do next points there"


def test_a_cost_of_a_part_is_not_shown_as_the_whole(tmp_path: Path) -> None:
    used = TokenCount(input=900, cached=0, output=100)
    priced = journal.ReplyTaken(step="1-1-analyst", role="analyst", characters=1, source="file", tokens=used, cost=0.5)
    events = [*started(), sent(1, ANALYST), at(2, priced), sent(3, TESTER), taken(4, TESTER, tokens=1990)]
    folder = write(tmp_path / ".tmp" / "r", [*events, finished(5, "PASS")])
    summary = summarise(folder)
    assert summary.token_words == ("3.0k (995 of them cached), cost at least 0.5000 (2.0k tokens have no price)")
    text, page = (path.read_text(encoding="utf-8") for path in write_report(folder))
    row = next(line for line in text.splitlines() if line.startswith("| whole run |"))
    assert "at least 0.5000" in row
    assert "at least 0.5000" in page
    whole = write(tmp_path / ".tmp" / "s", [*events[:-2], finished(5, "PASS")])
    assert summarise(whole).token_words == "1.0k (0 of them cached), cost 0.5000"


def test_turns_that_tell_of_no_tokens_are_counted(tmp_path: Path) -> None:
    events = [*started(), sent(1, ANALYST), taken(2, ANALYST, tokens=90), sent(3, TESTER), taken(4, TESTER)]
    words = summarise(write(tmp_path / ".tmp" / "r", [*events, finished(5, "PASS")])).token_words
    assert "unknown for 1 of 2 turns" in words


def test_a_killed_run_is_reported_as_interrupted(tmp_path: Path) -> None:
    folder = write(tmp_path / ".tmp" / "r", [*started(), sent(1, ANALYST)])
    text = write_report(folder)[0].read_text()
    assert text.startswith("# Interrupted in round 1\n")
    assert "last event at" in text
    assert "`quintet run`" in text
    with directory_lock(tmp_path):
        assert write_report(folder)[0].read_text().startswith("# Running, round 1\n")


def test_warnings_are_counted_in_words(tmp_path: Path) -> None:
    reminders = [at(2, journal.Reminded(role="analyst", number=number)) for number in (1, 2)]
    used_up = at(3, journal.ReviewsUsedUp(phase="analyst", round=1, cycles=1))
    warned = at(3, journal.Warned(text="the disk is full"))
    folder = write(tmp_path / ".tmp" / "r", [*started(), sent(1, ANALYST), *reminders, used_up, used_up, warned])
    summary = summarise(folder)
    assert summary.warning_words == "2 never approved, 2 reminders, 1 warning"
    assert summary.run.warnings[-1].text == "the disk is full"


def test_a_refused_host_is_one_warning_with_its_last_count(tmp_path: Path) -> None:
    line = "SANDBOX_DOMAINS=api.example,registry.example:443"
    events = [
        at(second, journal.HostRefused(role=role, host="registry.example", port=443, times=times, allow=line))
        for second, role, times in ((2, "analyst", 1), (3, "tester", 1), (4, "analyst", 7))
    ]
    folder = write(tmp_path / ".tmp" / "r", [*started(), sent(1, ANALYST), *events])
    summary = summarise(folder)
    assert summary.warning_words == "2 refused hosts"
    assert summary.run.warnings[0].text == (
        f"the sandbox refused registry.example:443 to analyst 7 times; to allow it: {line}"
    )
    assert all("to analyst 7 times" in path.read_text() for path in write_report(folder))


def test_no_number_of_backticks_ends_the_evidence(tmp_path: Path) -> None:
    events = [*started(), sent(1, TESTER), taken(2, TESTER, file="t.md"), verdict_of(2, "PASS")]
    folder = write(tmp_path / ".tmp" / "r", events)
    ticks = "`" * 200_000
    (folder / "t.md").write_text(f"before\n{ticks}\nafter")
    assert f"\n{ticks}`text\nbefore\n{ticks}\nafter\n{ticks}`\n" in report_markdown(summarise(folder))


def test_markup_is_not_escaped_twice_and_everything_else_is_once() -> None:
    inner = element("b", "<i> & \x1b[2J", css='"x"')
    assert inner == '<b class="&quot;x&quot;">&lt;i&gt; &amp; \ufffd[2J</b>'
    assert element("p", inner, " <") == f"<p>{inner} &lt;</p>"
    assert join([inner, "<"]) == f"{inner}&lt;"
    assert isinstance(join([inner, "<"]), Markup)
