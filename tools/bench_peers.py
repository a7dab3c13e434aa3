"""Quintet's terminal server and CAO 2.5.4 side by side, with the same trivial program behind both `codex` providers."""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.e2e.cao import cao_server, free_port  # noqa: E402
from tests.e2e.home import clean_environment, make_home  # noqa: E402
from tests.e2e.install import ensure_cao  # noqa: E402
from tests.e2e.processes import end_all_in  # noqa: E402

PROFILE = "programmer"
WANTED = {
    "a terminal, s": 5,
    "five at once, s": 4,
    "input, s": 8,
    "a status, ms": 2,
    "memory, MB": 1.67,
    "installed, MB": 5,
}
MANY = 200
ROUNDS = 10


@dataclass(frozen=True)
class Server:
    name: str
    http: httpx.Client
    pid: int
    project: Path
    start: float

    def create(self, path: str = "/sessions") -> dict[str, str]:
        params = {"provider": "codex", "agent_profile": PROFILE, "working_directory": str(self.project)}
        answer = self.http.post(path, params=params)
        assert answer.status_code == 201, answer.text
        found: dict[str, str] = answer.json()
        self.until(found["id"], {"idle", "completed"})
        return found

    def status(self, terminal: str) -> str:
        return str(self.http.get(f"/terminals/{terminal}").raise_for_status().json()["status"])

    def until(self, terminal: str, wanted: set[str]) -> None:
        deadline = time.monotonic() + 60
        while self.status(terminal) not in wanted:
            assert time.monotonic() < deadline, self.http.get(f"/terminals/{terminal}").text
            time.sleep(0.02)


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def stub_program(folder: Path) -> Path:
    program = folder / "codex"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "tools/stub_codex.py"} "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def quintet(folder: Path, project: Path, program: Path) -> Iterator[Server]:
    home = make_home("http://127.0.0.1:9", [project], [program])
    port = free_port()
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "quintet", "serve", "--no-token", "--port", str(port)],
        env=clean_environment(home, [program]) | {"XDG_STATE_HOME": str(folder / "s")},
        stdout=subprocess.DEVNULL,
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False) as http:
            wait_for(http)
            yield Server("Quintet", http, process.pid, project, time.perf_counter() - begun)
            for session in http.get("/sessions").json():
                http.delete(f"/sessions/{session['name']}")
    finally:
        process.terminate()
        process.wait(20)
        end_all_in(home)
        shutil.rmtree(home)


@contextmanager
def cao(profiles: Path, project: Path, program: Path) -> Iterator[Server]:
    with (
        cao_server(model_url="http://127.0.0.1:9", profiles=profiles, projects=[project], programs=[program]) as found,
        httpx.Client(base_url=found.url, timeout=120, trust_env=False) as http,
    ):
        yield Server("CAO 2.5.4", http, found.pid, project, found.start)


def wait_for(http: httpx.Client) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            http.get("/health").raise_for_status()
        except httpx.TransportError:
            time.sleep(0.005)
        else:
            return
    raise TimeoutError("the server did not start")


def measure(server: Server) -> dict[str, float]:
    first = server.create()
    single = [seconds(server.create) for _ in range(3)]

    def five() -> None:
        with ThreadPoolExecutor(5) as pool:
            list(pool.map(lambda _: server.create(f"/sessions/{first['session_name']}/terminals"), range(5)))

    together = seconds(five)
    inputs = []
    for number in range(ROUNDS):
        server.until(first["id"], {"idle", "completed"})
        inputs.append(
            seconds(lambda n=number: server.http.post(f"/terminals/{first['id']}/input", params={"message": f"hi {n}"}))  # type: ignore[misc]
        )
    reads = [seconds(lambda: server.status(first["id"])) for _ in range(200)]
    return {
        "server start, s": server.start,
        "a terminal, s": statistics.median(single),
        "five at once, s": together,
        "input, s": statistics.median(inputs),
        "a status, ms": 1000 * statistics.median(reads),
        "memory, MB": memory(server.pid),
    }


def memory(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def installed(python: Path) -> tuple[int, float]:
    """Packages and megabytes of an environment, without pip and the like."""
    script = (
        "import importlib.metadata as m, json, pathlib;"
        "ds=[d for d in m.distributions() if d.metadata['Name'] not in ('pip','setuptools','wheel')];"
        "fs={str(f.locate()) for d in ds for f in (d.files or [])};"
        "print(json.dumps([len(ds), sum(pathlib.Path(f).stat().st_size for f in fs if pathlib.Path(f).is_file())/1e6]))"
    )
    count, size = json.loads(subprocess.check_output([str(python), "-c", script], text=True))
    return int(count), float(size)


def own_environment(folder: Path) -> Path:
    """What a user installs: the package and its dependencies, nothing for development."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin/pip"), "install", "--quiet", str(ROOT)], check=True, capture_output=True)
    return folder / "bin/python"


def status_at(server: Server, terminals: list[str]) -> float:
    """The median status read when each terminal is read once a second."""
    taken = []
    for _ in range(3):
        begun = time.monotonic()
        for terminal in terminals:
            taken.append(seconds(lambda t=terminal: server.status(t)))  # type: ignore[misc]
        time.sleep(max(1 - (time.monotonic() - begun), 0))
    return 1000 * statistics.median(taken)


def crowd(server: Server) -> str:
    session = server.create()
    ids = [session["id"]]
    add = f"/sessions/{session['session_name']}/terminals"
    ids += [server.create(add)["id"] for _ in range(4)]
    few = status_at(server, ids)
    with ThreadPoolExecutor(8) as pool:
        ids += [found["id"] for found in pool.map(lambda _: server.create(add), range(MANY - len(ids)))]
    many = status_at(server, ids)
    return f"a status with 5 terminals {few:.2f} ms, with {MANY} terminals {many:.2f} ms"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="q5-", dir="/var/tmp") as name:
        folder = Path(name)
        project, profiles = folder / "project", folder / "profiles"
        project.mkdir()
        program = stub_program(folder)
        subprocess.run(
            [sys.executable, "-m", "quintet", "profiles", "export", str(profiles)], check=True, capture_output=True
        )
        with quintet(folder, project, program) as server:
            ours = measure(server)
            line = crowd(server)
        with cao(profiles, project, program) as server:
            theirs = measure(server)
        ours["packages"], ours["installed, MB"] = installed(own_environment(folder / "venv"))
        theirs["packages"], theirs["installed, MB"] = installed(ensure_cao().parent / "python")
    print(f"{'':<20} {'Quintet':>10} {'CAO 2.5.4':>10} {'factor':>8} {'wanted':>8}")
    for key, value in ours.items():
        factor = theirs[key] / value
        verdict = "" if factor >= WANTED.get(key, 0) else "  MISSED"
        print(f"{key:<20} {value:>10.3f} {theirs[key]:>10.3f} {factor:>8.1f} {WANTED.get(key, 1):>8.1f}{verdict}")
    print(line)


if __name__ == "__main__":
    main()
