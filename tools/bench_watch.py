"""What watching costs: the server's share of a core with the page open, while the agents are silent."""

import os
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402

from quintet.roles import ANALYST  # noqa: E402
from tests.watch.scripted import scripted, story  # noqa: E402

WATCH_SECONDS = 30.0
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def page_open() -> str:
    """With the page of a run's own server open: the run with its server, and the dashboard's server beside it."""
    roles = story()
    roles[ANALYST.name] = [[{"say": "thinking"}, {"hang": True}]]
    with scripted(roles) as project, sync_playwright() as playwright:
        run = project.start("run", prefix=["env"], POLL_SECONDS="2")
        board = project.start("dashboard", "--port", "0", prefix=["env"])
        assert board.stdout
        urls = [board.stdout.readline().split()[-1]]
        project.until_there("server.json")
        word = project.server
        urls.append(f"{word['url']}/#token={word['token']}")
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for url in urls:
            page = browser.new_page()
            page.goto(url)
            page.locator(".step.now").wait_for(timeout=60_000)
            page.locator(".xterm").wait_for()
        time.sleep(5)
        shares = {"run with its server": run.pid, "dashboard's server": board.pid}
        before = {name: cpu_seconds(pid) for name, pid in shares.items()}
        begun = time.monotonic()
        time.sleep(WATCH_SECONDS)
        spent = time.monotonic() - begun
        told = [f"{name} {100 * (cpu_seconds(pid) - before[name]) / spent:.2f} %" for name, pid in shares.items()]
        browser.close()
        run.kill()
    return f"{', '.join(told)} of a core"


def cpu_seconds(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


BENCHMARKS = {"page open, agents silent": page_open}


def main() -> None:
    for name, measure in BENCHMARKS.items():
        print(f"{name:<24} {measure()}", flush=True)


if __name__ == "__main__":
    main()
