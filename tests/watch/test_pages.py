"""What the page asks for, without a browser."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from quintet.loop import journal
from quintet.loop.record.lock import directory_lock
from quintet.roles import ANALYST, TESTER
from quintet.watch.dashboard import routes as module
from quintet.watch.dashboard.routes import DashboardRoutes
from quintet.watch.runs.diff import Diff, save_diff
from quintet.watch.runs.model import GONE, run_from_events
from quintet.watch.runs.timeline import draw_timeline
from tests.watch.events import at, failed_run, finished, sent, started, taken, verdict_of, write

RUN = "20260102-030405-abcdef"


class Client:
    """Asks the pages as a server would."""

    def __init__(self, pages: DashboardRoutes) -> None:
        self._app = FastAPI()
        self._app.include_router(pages.router)

    def get(self, path: str) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                return await http.get(path)

        return asyncio.run(ask())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = write(tmp_path / ".tmp" / RUN, failed_run())
    (folder / "prompts").mkdir()
    return tmp_path


@pytest.fixture
def client(project: Path) -> Client:
    return Client(DashboardRoutes(lambda: [project]))


def test_the_runs_and_the_newest_of_them(client: Client, project: Path) -> None:
    listed = client.get("/watch/runs").json()
    assert [run["id"] for run in listed["runs"]] == [RUN]
    assert listed["runs"][0]["tokens"] == 3640
    told = client.get("/watch/runs/latest").json()
    assert told["headline"] == "FAIL after round 1"
    assert [turn["role"] for turn in told["handoffs"]] == ["analyst", "peer_analyst", "programmer", "tester"]
    assert told["handoffs"][1]["verdict"]["evidence"] == ["artifact", "handoff"]
    assert told["current"] is None
    assert told["active_intervals"][0][1] - told["active_intervals"][0][0] == 51
    write(project / ".tmp" / "20270101-000000-ffffff", [*started(), sent(1, ANALYST)])
    assert client.get("/watch/runs/latest").json()["current"] == 0


def test_the_timeline_is_the_one_of_the_report(client: Client) -> None:
    drawing = client.get("/watch/runs/latest/timeline").json()
    assert drawing == json.loads(json.dumps(draw_timeline(run_from_events(failed_run()))))
    turns = [part for part in drawing[2] if part[1].get("class") == "turn"]
    assert [part[1]["data-number"] for part in turns] == [0, 1, 2, 3]
    assert client.get("/watch/runs/nothing/timeline").status_code == 404


def test_a_turn_without_a_reply_grows_while_its_run_is_running() -> None:
    run = run_from_events([*started(), sent(10, ANALYST)])

    def width(now: float) -> float:
        drawing = json.loads(json.dumps(draw_timeline(run, now)))
        (turn,) = (part for part in drawing[2] if part[1].get("class") == "turn")
        return float(turn[2][1][1]["width"])

    assert width(run.ended + 20) < width(run.ended + 90)
    gone = replace(run, status=GONE)
    assert draw_timeline(gone, run.ended + 20) == draw_timeline(gone, run.ended + 90)


def test_a_run_that_was_killed_is_not_shown_as_running(client: Client, project: Path) -> None:
    write(project / ".tmp" / "20270101-000000-ffffff", [*started(), sent(1, ANALYST)])
    told = client.get("/watch/runs/latest").json()
    assert (told["status"], told["headline"], told["seconds"]) == ("GONE", "Interrupted in round 1", 1)
    assert {"code": True, "text": "quintet run"} in told["advice"][-1]
    assert client.get("/watch/runs").json()["runs"][0]["status"] == "GONE"
    with directory_lock(project):
        assert client.get("/watch/runs/latest").json()["status"] == "RUNNING"


def test_a_process_that_goes_or_comes_is_told_like_a_line_of_the_journal(project: Path) -> None:
    pages = DashboardRoutes(lambda: [project])
    before = module._sizes(pages._newest_journals())
    with directory_lock(project):
        assert module._sizes(pages._newest_journals()) != before
    assert module._sizes(pages._newest_journals()) == before


def test_the_words_of_the_users_command(project: Path) -> None:
    folder = project / ".tmp" / RUN
    verified = at(3, journal.Verified(round=1, command="make check", exit_code=2, file="002-verify.md"))
    events = [*started(), sent(1, TESTER), taken(2, TESTER, file="001.md"), verdict_of(2, "PASS"), verified]
    write(folder, [*events, finished(4, "FAIL")])
    (folder / "002-verify.md").write_text("2 tests failed\n")
    client = Client(DashboardRoutes(lambda: [project]))
    assert client.get(f"/watch/runs/{RUN}/handoffs/0").json()["output"] == "2 tests failed\n"
    told = client.get("/watch/runs/latest").json()
    assert {"code": True, "text": f".tmp/{RUN}/002-verify.md"} in told["advice"][0]


@pytest.mark.parametrize("name", ["..", "nothing", "%2e%2e", "..%2f..%2fetc", "20260102", RUN + "%00"])
def test_no_other_folder_is_a_run(client: Client, name: str) -> None:
    assert client.get(f"/watch/runs/{name}").status_code == 404
    assert client.get(f"/watch/runs/{name}/handoffs/0").status_code == 404
    assert client.get(f"/watch/runs/{name}/diff").status_code == 404


@pytest.mark.parametrize("number", ["-1", "4", "99999999999999999999"])
def test_no_other_handoff(client: Client, number: str) -> None:
    assert client.get(f"/watch/runs/{RUN}/handoffs/{number}").status_code == 404


def test_a_handoffs_texts(project: Path) -> None:
    folder = project / ".tmp" / RUN
    events = [*started(), sent(1, TESTER, file="prompts/001.md"), taken(2, TESTER, file="001.md"), finished(3, "PASS")]
    write(folder, events)
    (folder / "prompts" / "001.md").write_text("do it\x1b[2J")
    (folder / "001.md").write_text("<b>done</b>")
    told = Client(DashboardRoutes(lambda: [project])).get(f"/watch/runs/{RUN}/handoffs/0").json()
    assert told == {
        "prompt": "do it�[2J",
        "reply": "<b>done</b>",
        "actions": "Not known: there is no record of this turn that can be read.",
        "output": "",
        "left_out_bytes": 0,
        "condensed": [],
    }


def test_the_diff_of_a_run(project: Path, client: Client) -> None:
    patch = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+<b>\n+\x1b[2J\n"
    save_diff(project / ".tmp" / RUN, Diff(patch, "Left out: y."))
    lines = [["hunk", None, None, "@@ -1 +1,2 @@"], ["removed", 1, None, "-a"]]
    lines += [["added", None, 1, "+<b>"], ["added", None, 2, "+�[2J"]]
    file = {"title": "x", "words": "", "added": 2, "removed": 1, "open": True, "left_out": 0, "lines": lines}
    told = client.get("/watch/runs/latest/diff").json()
    assert told == {"note": "Left out: y.", "added": 2, "removed": 1, "more_files": 0, "files": [file]}
    write(project / ".tmp" / "20270101-000000-ffffff", [*started(), sent(1, ANALYST)])
    told = client.get("/watch/runs/latest/diff").json()
    assert told["files"] == []
    assert "not in a git repository" in told["note"]


def test_every_file_of_the_page_has_the_policy_and_needs_nothing_from_outside(client: Client) -> None:
    for path in DashboardRoutes.open_paths:
        answer = client.get(path)
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe-eval" not in answer.headers["content-security-policy"]
        if "xterm" not in path and not path.endswith(".svg"):
            assert "//" not in answer.text.replace("// ", "").replace("http://www.w3.org/2000/svg", ""), path
    for name in ("common", "dashboard", "queue"):
        script = client.get(f"/static/{name}.js").text
        harmful = ("innerHTML =", "outerHTML", "insertAdjacentHTML", "eval(", "document.write")
        assert not [word for word in harmful if word in script], name


def test_a_journal_that_grows_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    told: list[dict[str, Any]] = []

    async def watch() -> None:
        seen = asyncio.Event()

        def tell(kind: str, **data: Any) -> None:
            told.append({"kind": kind, **data})
            seen.set()

        task = asyncio.create_task(DashboardRoutes(lambda: [project]).watch(tell, lambda: True))
        await asyncio.sleep(0.1)
        assert told == []
        with (project / ".tmp" / RUN / "journal.jsonl").open("a") as file:
            file.write("{}\n")
        await asyncio.wait_for(seen.wait(), 10)
        task.cancel()

    asyncio.run(watch())
    assert [(item["kind"], item["run"]) for item in told] == [("journal", RUN)]
