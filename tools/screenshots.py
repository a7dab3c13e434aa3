"""Make the pictures in docs/images/ from a real run of the demo's agents: `python tools/screenshots.py`.

The dashboard is photographed while the run is under way, in light and in dark, and the report after it. The terminal
view is drawn by rich as SVG. Inter and JetBrains Mono (Debian: fonts-inter, fonts-jetbrains-mono) look best.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from quintet.demo import SCENARIO_FILE, prepare  # noqa: E402
from quintet.demo.script import SCENARIO  # noqa: E402
from quintet.layout import JOURNAL  # noqa: E402
from quintet.watch.console.live_view import LiveFrame  # noqa: E402
from quintet.watch.runs.folders import JournalTail, run_folders  # noqa: E402
from quintet.watch.runs.summary import task_title  # noqa: E402

IMAGES = ROOT / "docs" / "images"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
SLOWER = 4.0
"""how much longer the demo's agents think, so that there is time to look"""
LARGEST = 300_000
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="qs", dir="/tmp"))
    (root / "home").mkdir()
    folder = prepare(root / "demo")
    (folder / SCENARIO_FILE).write_text(json.dumps(slowed(SCENARIO)), encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "LANG": "C.UTF-8", "TZ": "UTC"}
    environment |= {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "XDG_STATE_HOME": str(root / "x")}
    settings = {"PROVIDER": "scripted", "QUINTET_SCENARIO": str(folder / SCENARIO_FILE), "POLL_SECONDS": "0.3",
                "PROMPT_FILE": str(folder / "task.md"), "POST_GIT_COMMIT": "1"}  # fmt: skip
    project = folder / "project"
    quintet = [sys.executable, "-m", "quintet"]
    run = subprocess.Popen([*quintet, "run", "--plain"], cwd=project, env=environment | settings)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            while_it_runs(browser, project)
            run.wait(300)
            after_it(browser, project)
            browser.close()
    finally:
        if run.poll() is None:
            run.kill()
        run.wait()
        subprocess.run([*quintet, "stop", "--all"], cwd=project, env=environment, check=False)
        shutil.rmtree(root, ignore_errors=True)
    for path in sorted(IMAGES.iterdir()):
        size = path.stat().st_size
        print(f"{path.relative_to(ROOT)}: {size:,} bytes")
        assert size < LARGEST, f"{path} is too large"


def slowed(value: object) -> object:
    """The scenario with longer thoughts."""
    if isinstance(value, dict):
        return {key: SLOWER * item if key == "think" else slowed(item) for key, item in value.items()}
    return [slowed(item) for item in value] if isinstance(value, list) else value


def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found, "Chromium is missing: tools/ensure-chromium installs it"
    return found


def while_it_runs(browser: Browser, project: Path) -> None:
    """In round 2, while the programmer is at work: its terminal and the tester's verdict are what there is to see."""
    tail = follow(project)
    while not (tail.run.round == 2 and tail.run.handoffs[-1].cycle == 2):
        tail.read_new()
        assert tail.run.status == "RUNNING", "too late"
        time.sleep(0.1)
    word = json.loads((project / ".tmp" / "server.json").read_text(encoding="utf-8"))
    for scheme in SCHEMES:
        page = browser.new_page(viewport={"width": 1240, "height": 1480}, color_scheme=scheme, device_scale_factor=1)
        page.goto(f"{word['url']}/#token={word['token']}")
        page.locator(".xterm").wait_for()
        page.locator("#sheet h3").wait_for()
        page.wait_for_timeout(700)
        save(page, f"dashboard-{scheme}.png")
        page.locator("[data-turn='3']").click()
        page.locator(".chips").wait_for()
        page.locator("#handoffs").screenshot(path=IMAGES / f"handoffs-{scheme}.png")
        page.close()
    terminal_view(tail, project)


def after_it(browser: Browser, project: Path) -> None:
    folder = run_folders(project)[0]
    for scheme in SCHEMES:
        page = browser.new_page(viewport={"width": 1060, "height": 1000}, color_scheme=scheme)
        page.goto((folder / "report.html").as_uri())
        save(page, f"report-{scheme}.png")
        page.close()


def follow(project: Path) -> JournalTail:
    deadline = time.monotonic() + 60
    while not run_folders(project):
        assert time.monotonic() < deadline, "the run did not begin"
        time.sleep(0.1)
    return JournalTail(run_folders(project)[0] / JOURNAL)


def terminal_view(tail: JournalTail, project: Path) -> None:
    """The live view, as rich draws it for a window of 100 columns."""
    picture = LiveFrame(title=task_title(run_folders(project)[0], tail.run.id))
    for event in JournalTail(tail.path).read_new():
        picture.add(event)
    console = Console(record=True, width=100, height=32, file=io.StringIO(), force_terminal=True)
    console.print(picture.draw(100, 30))
    drawn = console.export_svg(title="quintet run")
    # rich's picture would load its font from elsewhere; any monospaced one will do
    (IMAGES / "terminal.svg").write_text(re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL), encoding="utf-8")


def save(page: Page, name: str) -> None:
    page.screenshot(path=IMAGES / name)


if __name__ == "__main__":
    main()
