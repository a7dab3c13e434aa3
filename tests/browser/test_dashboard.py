"""The dashboard in a real Chromium, on a real run of the scripted agents."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from quintet.fleet.add import Wish
from quintet.fleet.choosing import Worker
from quintet.roles import ANALYST, PEER_ANALYST, ROLES, TESTER
from tests.eventually import eventually
from tests.fleet.rig import fleet
from tests.hermetic import find_on_machine
from tests.stub.replies import ANALYST_SUMMARY
from tests.watch.events import failed_run, write
from tests.watch.scripted import DEADLINE, Scripted, scripted, story, turns
from tests.watch.test_pages import RUN

pytestmark = pytest.mark.browser

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ATTACK = (
    "</pre><script>window.attacked = 1</script><img src=x onerror='window.attacked = 2'>"
    "<svg onload='window.attacked = 3'></svg>\x1b]0;title\x07 \u202eflip"
)
ATTACK_LINE = "<script>window.attacked = 4</script><img src=x onerror=window.attacked=5>"
PATIENCE = 1000 * 30


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_on_machine("chromium", "chromium-browser", "google-chrome")
    assert program, "Chromium is missing: tools/ensure-chromium installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page; what its policy or its script complains of fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        # a server that is away is an error only to the browser
        if message.type == "error" and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    yield page
    context.close()
    assert complaints == []


def address(project: Scripted) -> str:
    """The page of the run's own server."""
    project.until_there("server.json")
    word = project.server
    return f"{word['url']}/#token={word['token']}"


def roles_at_work(page: Page, process: Any) -> list[str]:
    """Return the roles that the page shows as the current step, in order, until the run has ended."""
    seen: list[str] = []

    def has_ended() -> bool:
        # one look: between two steps there is no button, and a locator would wait for the next
        for name in page.locator(".step.now button").evaluate_all("buttons => buttons.map(one => one.dataset.role)"):
            if seen[-1:] != [name]:
                seen.append(name)
        page.wait_for_timeout(80)
        return process.poll() is not None

    eventually(has_ended, "the run has ended", deadline=DEADLINE, on_failure=lambda: page.locator("body").inner_text())
    return seen


def test_a_run_from_its_first_prompt_to_its_pass(page: Page) -> None:
    script = story(think=1.2)
    script[ANALYST.name] = turns(ANALYST_SUMMARY + ATTACK, think=1.2)
    with scripted(script) as project:
        process = project.start("run", CLEANUP_ON_EXIT="0")
        page.goto(address(project))
        expect(page.locator("#link")).to_have_text("live", timeout=PATIENCE)
        assert "token" not in page.url, "the token leaves the address at once"

        expect(page.locator(".step.now button")).to_have_attribute("data-role", ANALYST.name, timeout=PATIENCE)
        expect(page.locator(f'[data-screen="{ANALYST.name}"]')).to_contain_text("Scripted agent", timeout=PATIENCE)

        # its first handoff, as soon as there is one; the answer is shown as what it is: text
        page.locator("[data-turn='0']").click(timeout=PATIENCE)
        expect(page.locator("#text")).to_contain_text("<script>window.attacked = 1</script>", timeout=PATIENCE)
        expect(page.locator("#text")).not_to_contain_text("\u202e")
        page.keyboard.press("p")
        expect(page.locator("#text")).to_contain_text("RESPONSE FILE INSTRUCTION")
        page.keyboard.press("r")

        # the terminal too: the agent has printed its answer there
        page.keyboard.press("1")
        expect(page.locator(f'[data-screen="{ANALYST.name}"]')).to_contain_text("attacked = 1", timeout=PATIENCE)
        page.keyboard.press("f")

        seen = roles_at_work(page, process)
        assert [role.name for role in ROLES if role.name in seen][1:] == [role.name for role in ROLES][1:], seen
        assert page.evaluate("window.attacked") is None

        expected = [event for event in project.journal if event["event"] == "reply_taken"]
        assert process.wait(DEADLINE) == 0
        assert len(expected) == 10


def test_a_finished_run_read_with_the_keyboard_and_a_server_that_restarts(page: Page) -> None:
    with scripted(story()) as project:
        assert project.call("run")[0] == 0
        board = project.start("dashboard", "--port", "0")
        url = _told(board)
        port = httpx.URL(url).port
        page.goto(url)
        expect(page.locator("#headline")).to_have_text("PASS in round 2", timeout=PATIENCE)
        expect(page.locator("[data-turn]")).to_have_count(10)
        expect(page.locator(".turn")).to_have_count(10)
        expect(page.locator("[data-turn='9']")).to_have_attribute("aria-current", "true")

        # back to the tester's first verdict, and what of the programmer's reply its prompt left out
        for _ in range(3):
            page.keyboard.press("k")
        expect(page.locator("#sheet strong")).to_have_text("✗ FAIL")
        page.keyboard.press("l")
        expect(page.locator("#text")).to_contain_text("Known limitations")
        page.keyboard.press("p")
        expect(page.locator("#text")).not_to_contain_text("Known limitations")

        # the evidence that was matched in an approval
        page.locator("[data-turn='3']").press("Enter")
        expect(page.locator(".chips span")).to_have_text(["artifact", "P1", "downstream", "handoff"])

        page.keyboard.press("0")
        expect(page.locator("[data-screen]")).to_have_count(5)
        for role in ROLES:
            screen = page.locator(f'[data-screen="{role.name}"]')
            expect(screen).to_contain_text(f"Scripted agent, {role.name}", timeout=PATIENCE)
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        page.keyboard.press("Escape")

        board.kill()
        board.wait()
        expect(page.locator("#link")).to_contain_text("no connection", timeout=PATIENCE)
        board = project.start("dashboard", "--port", str(port))
        url = _told(board)
        expect(page.locator("#link")).to_have_text("no token", timeout=PATIENCE)
        expect(page.locator("#notice")).to_contain_text("This link is from an earlier start of the server")
        page.goto(url)
        page.reload()
        expect(page.locator("#link")).to_have_text("live", timeout=PATIENCE)

        # a new run appears by itself, and the old one is still there
        project.script(story())
        assert project.call("run")[0] == 0
        expect(page.locator("#runs tr")).to_have_count(2, timeout=PATIENCE)
        page.locator("[data-run]").last.click()
        expect(page.locator("#runs tr.chosen [data-run]")).to_have_text(
            page.locator("[data-run]").last.inner_text(), timeout=PATIENCE
        )


def test_a_killed_run_stands_still_on_every_page_and_goes_on(page: Page) -> None:
    script = story()
    with scripted(script | {ANALYST.name: [[{"say": "thinking"}, {"hang": True}]]}) as project:
        run = project.start("run")
        page.goto(_told(project.start("dashboard", "--port", "0")))
        own = page.context.new_page()
        own.goto(address(project))
        for shown in (page, own):
            expect(shown.locator(".step.now button")).to_have_attribute("data-role", ANALYST.name, timeout=PATIENCE)
        run.kill()
        run.wait()
        expect(page.locator("#headline")).to_have_text("Interrupted in round 1", timeout=PATIENCE)
        expect(page.locator("#notice code")).to_have_text(re.compile("quintet run$"))
        expect(page.locator(".step.now")).to_have_count(0)
        expect(page.locator("#runs")).to_contain_text("Interrupted in round 1")
        # the page of the run's own server cannot come back, and says where there is one that stays
        expect(own.locator("#notice code")).to_have_text(
            re.compile(f"quintet dashboard --wd {re.escape(str(project.wd))}$"), timeout=PATIENCE
        )
        assert own.evaluate("now() === now()"), "its clocks stand still"

        project.call("stop", "--all")
        project.script(script)
        assert project.call("run")[0] == 0
        expect(page.locator("#headline")).to_have_text("PASS in round 2", timeout=PATIENCE)
        expect(page.locator("#notice")).to_be_hidden()


def test_the_last_word_of_a_command_and_the_warnings(page: Page) -> None:
    with scripted({TESTER.name: turns("RESULT: PASS\nEVIDENCE:\n- ok\n")}) as project:
        (project.wd / "draft.txt").write_text("not committed")
        settings = {"START_AGENT": "tester", "MAX_ROUNDS": "1", "POST_GIT_COMMIT": "1"}
        assert project.call("run", VERIFY_CMD="echo 2 tests failed; exit 3", **settings)[0] == 1
        page.goto(_told(project.start("dashboard", "--port", "0")))
        expect(page.locator("#headline")).to_have_text("FAIL after round 1", timeout=PATIENCE)
        expect(page.locator("#notice")).to_contain_text("002-verify.md")
        expect(page.locator("#warnings li")).to_contain_text(["1 uncommitted change, which"])
        expect(page.locator("#text")).to_contain_text("RESULT: PASS")
        page.keyboard.press("c")
        expect(page.locator("#text")).to_contain_text("2 tests failed")


def test_the_diff_folded_and_unfolded(page: Page) -> None:
    lines = "".join(f"line {number}\\n" for number in range(200))
    work = f"printf '{ATTACK_LINE}\\n' > short.txt; printf '{lines}' > long.txt; printf '\\0' > picture.png"
    with scripted({TESTER.name: [[{"run": work}, *turns("RESULT: PASS\nEVIDENCE:\n- ok\n")[0]]]}) as project:
        assert project.call("run", START_AGENT="tester", GUARD="off", MAX_ROUNDS="1")[0] == 0
        page.goto(_told(project.start("dashboard", "--port", "0")))
        expect(page.locator("#diff-words")).to_have_text(
            "3 files changed since the start commit, +201 −0. ", timeout=PATIENCE
        )
        page.keyboard.press("d")
        expect(page.locator("#diff-title")).to_be_in_viewport()
        files = page.locator("#diff .file")
        expect(files.locator(".name")).to_have_text(["long.txt", "picture.png", "short.txt"])
        long, picture, short = (files.nth(number) for number in range(3))
        expect(picture).to_contain_text("new, not shown: binary")
        assert short.get_attribute("open") is not None
        expect(short.locator("tr.added td:last-child")).to_have_text("+" + ATTACK_LINE)
        assert page.evaluate("window.attacked") is None

        assert long.get_attribute("open") is None
        assert long.locator("tr").count() == 0, "drawn when it is unfolded"
        long.locator("summary").press("Enter")
        expect(long.locator("tr.added")).to_have_count(200)
        expect(long.locator("tr").last.locator("td")).to_have_text(["", "200", "+line 199"])
        short.locator("summary").click()
        expect(short.locator("table")).to_be_hidden()

        # what the user has folded stays so when the page reads the diff again
        page.evaluate("view.diff.key = view.diff.key.split(' ')[0] + ' '; view.diff.text = ''; loadDiff()")
        expect(page.locator("#diff .file[open] .name")).to_have_text(["long.txt"])

        # the report has the same files, without any script
        page.goto((project.folder / "report.html").as_uri())
        expect(page.locator(".file[open] .name")).to_have_text(["short.txt"])
        expect(page.locator(".file:not([open]) .name")).to_have_text(["long.txt", "picture.png"])
        page.locator(".file summary").first.click()
        expect(page.locator("tr.added").first).to_be_visible()


def test_the_page_without_its_token_and_orders_to_the_dashboard(page: Page) -> None:
    with scripted({TESTER.name: turns("none"), PEER_ANALYST.name: turns("none")}) as project:
        url = _told(project.start("dashboard", "--port", "0"))
        bare, _, token = url.partition("#token=")
        page.goto(bare)
        expect(page.locator("#link")).to_have_text("no token", timeout=PATIENCE)
        with httpx.Client(base_url=bare, trust_env=False) as stranger:
            assert stranger.get("/watch/runs").status_code == 401
            assert stranger.get("/events").status_code == 401
            policy = stranger.get("/").headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
        with httpx.Client(base_url=bare, headers={"Authorization": f"Bearer {token}"}, trust_env=False) as owner:
            assert owner.get("/watch/runs").json()["runs"] == []
            assert owner.get("/watch/runs", headers={"Host": "evil.example"}).status_code == 400
            assert owner.get("/watch/runs", headers={"Origin": "http://evil.example"}).status_code == 403
            for order in ("/sessions", "/terminals/00000000/input", "/terminals/00000000/exit", "/watch/runs"):
                assert owner.post(order).status_code == 405


def _told(board: Any) -> str:
    """The address that the dashboard prints."""
    line = board.stdout.readline()
    assert "http://127.0.0.1:" in line, line
    return str(line.split()[-1])


def test_on_a_phone_a_run_is_approved_with_two_taps_from_its_link(page: Page) -> None:
    page.set_viewport_size({"width": 420, "height": 800})
    with scripted(story()) as project:
        process = project.start("run", APPROVE="spec,result")
        board = project.start("dashboard", "--control", "--port", "0")
        url = _told(board)
        page.goto(url)  # once, on the evening before: the tab keeps the token
        approve = page.locator("[data-action='approve']")
        expect(approve).to_be_visible(timeout=PATIENCE)
        run = page.locator("#facts").inner_text().split("Run\n")[1].split("\n")[0]

        page.goto(f"{url.partition('#')[0]}#run={run}")
        page.reload()
        approve.click()
        expect(page.locator("#ask-words")).to_contain_text("The run goes on.")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 420, "nothing is wider than the screen"
        page.locator("#ask-yes").click()
        expect(page.locator("#ask")).not_to_be_visible()

        send_back = page.locator("[data-action='reject']")
        expect(page.locator("#notice")).to_contain_text("approve the result", timeout=PATIENCE)
        send_back.click()
        page.locator("#ask-yes").click()
        expect(page.locator("#ask-error")).to_contain_text("there is nothing in it")
        page.locator("#ask-no").click()
        approve.click()
        page.locator("#ask-yes").click()
        assert process.wait(DEADLINE) == 0
        expect(page.locator("#headline")).to_contain_text("PASS", timeout=PATIENCE)
        expect(page.locator("#actions")).not_to_be_visible()


def test_the_queue_with_every_machine_and_the_way_to_a_run(page: Page) -> None:
    with fleet() as queue:
        waiting, failed = queue.add("a", Wish(labels=("gpu",))), queue.add("b")
        write(queue.project.wd / ".tmp" / RUN, failed_run())
        queue.note(failed, title=ATTACK_LINE, progress={"run": RUN})
        queue.database.cancel(failed)
        queue.database.beat(Worker(name="anna", slots=2, providers={"scripted": ""}))
        board = queue.project.start("dashboard", "--port", "0", **queue.settings)
        page.goto(_told(board))
        page.get_by_role("link", name="Queue").click()
        expect(page.locator("#headline")).to_have_text("1 waiting", timeout=PATIENCE)
        expect(page.locator("#waiting")).to_contain_text("a worker with label gpu")
        expect(page.locator(f"#waiting [data-task='{waiting}']")).not_to_have_attribute("href", re.compile("."))
        expect(page.locator("#machines")).to_contain_text("anna")
        expect(page.locator("#ended")).to_contain_text(ATTACK_LINE)
        assert page.evaluate("window.attacked") is None
        page.set_viewport_size({"width": 420, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == 420

        # what changes in the database shows by itself
        queue.note(waiting, parked="usage limit", parked_until=0)
        expect(page.locator("#parked")).to_contain_text("usage limit", timeout=PATIENCE)
        expect(page.locator("#waiting")).to_be_hidden()

        page.locator(f"[data-task='{failed}']").click()
        expect(page.locator("#headline")).to_have_text("FAIL after round 1", timeout=PATIENCE)
        expect(page.locator("[data-turn]")).to_have_count(4)
