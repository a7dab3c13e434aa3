"""The real CAO server on a free loopback port, in a home and with a tmux of its own."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from tests.e2e.home import clean_environment, make_home
from tests.e2e.install import ensure_cao, need_tmux
from tests.e2e.processes import end_all_in
from tests.eventually import eventually

AGENT_STORE = ".aws/cli-agent-orchestrator/agent-store"
START_SECONDS = 60.0
STOP_SECONDS = 10.0
TAIL = 3000


@dataclass(frozen=True)
class Cao:
    url: str
    home: Path
    pid: int
    log: Path
    start: float
    """seconds from the start of its process to its first answer"""

    def tail(self) -> str:
        """The end of what the server has said."""
        return self.log.read_text(errors="replace")[-TAIL:]


@contextmanager
def cao_server(
    *,
    model_url: str,
    profiles: Path,
    projects: Sequence[Path],
    programs: Sequence[Path],
    version: str = "2.5.4",
) -> Iterator[Cao]:
    """A running server; when the block ends, so does everything that was started in it.

    `profiles` is a folder of Markdown profiles, `projects` are the working directories that Codex shall
    trust (CAO refuses those below /root, /etc and the like), `programs` the agent CLIs that login shells
    shall find. After an error the home stays, for a look at its logs.
    """
    server = ensure_cao(version)
    tmux = need_tmux()
    home = make_home(model_url, projects, programs)
    shutil.copytree(profiles, home / AGENT_STORE)
    # A socket's path may have some 100 characters only, and the repository may lie deep.
    sockets = Path(tempfile.mkdtemp(prefix="q5-"))
    port = free_port()
    environment = clean_environment(home, programs) | {
        "TMUX_TMPDIR": str(sockets),
        "CAO_API_HOST": "127.0.0.1",
        "CAO_API_PORT": str(port),
    }
    log = home / "cao-server.log"
    try:
        begun = time.perf_counter()
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [str(server), "--host", "127.0.0.1", "--port", str(port)],
                cwd=home,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        cao = Cao(f"http://127.0.0.1:{port}", home, process.pid, log, 0.0)
        try:
            _wait_until_healthy(cao, process)
            yield replace(cao, start=time.perf_counter() - begun)
        finally:
            _stop(process)
            subprocess.run(
                [str(tmux), "kill-server"],
                env=environment,
                capture_output=True,
                timeout=STOP_SECONDS,
                check=False,
            )
    finally:
        end_all_in(home)
        shutil.rmtree(sockets)
    shutil.rmtree(home)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_healthy(cao: Cao, process: subprocess.Popen[bytes]) -> None:
    def is_healthy() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"cao-server ended with {process.returncode}: {cao.tail()}")
        try:
            return httpx.get(f"{cao.url}/health", trust_env=False).is_success
        except httpx.TransportError:
            return False

    eventually(is_healthy, "cao-server is ready", deadline=START_SECONDS, on_failure=cao.tail)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
