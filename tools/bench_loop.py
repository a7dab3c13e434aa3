"""What a run costs beside its agents: the time of a handoff, the start of the command, and the price of waiting."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.stub.replies import SMOOTH, TASK  # noqa: E402
from tests.stub.server import Stub, Turn, serving  # noqa: E402

QUINTET = [sys.executable, "-m", "quintet"]
WAIT_SECONDS = 20.0


def environment(wd: Path, url: str = "") -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(wd), "API": url, "PROMPT": TASK, "WD": str(wd)}


def handoff() -> str:
    """From an agent's coming to rest, one second after it wrote its file, to the request with the next prompt."""
    stub = Stub()
    stub.script = {role: [Turn(text, work=0.1, rest_after=1.0) for text in texts] for role, texts in SMOOTH.items()}
    with tempfile.TemporaryDirectory() as folder, serving(stub):
        subprocess.run([*QUINTET, "run"], env=environment(Path(folder), stub.url), check=True, capture_output=True)
    prompts = [call.at for call in stub.of("POST", "/input") if not call.params["message"].startswith("/rename")]
    gaps = [1000 * (begin - rest) for rest, begin in zip(stub.rested, prompts[1:], strict=False)]
    return f"{statistics.median(gaps):6.1f} ms median, {max(gaps):6.1f} ms at most, over {len(gaps)} handoffs"


def start() -> str:
    """`quintet --help`, against a Python that does nothing."""
    return f"{best([*QUINTET, '--help']):.3f} s (a bare python: {best([sys.executable, '-c', 'pass']):.3f} s)"


def best(command: list[str], times: int = 7) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        taken.append(time.perf_counter() - begun)
    return min(taken)


def waiting() -> str:
    """Processor time and memory of a run whose agent is at work and says nothing."""
    stub = Stub()
    stub.script = {role: [Turn(work=10 * WAIT_SECONDS)] for role in SMOOTH}
    with tempfile.TemporaryDirectory() as folder, serving(stub):
        process = subprocess.Popen(
            [*QUINTET, "run"], env=environment(Path(folder), stub.url), stdout=subprocess.DEVNULL
        )
        try:
            deadline = time.monotonic() + 30
            while not stub.prompts and time.monotonic() < deadline:
                time.sleep(0.05)
            before, begun = cpu_seconds(process.pid), time.monotonic()
            time.sleep(WAIT_SECONDS)
            share = (cpu_seconds(process.pid) - before) / (time.monotonic() - begun)
            memory = memory_megabytes(process.pid)
        finally:
            process.kill()
            process.wait()
    return f"{100 * share:.2f} % of a core, {memory:.0f} MB"


def cpu_seconds(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def memory_megabytes(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


BENCHMARKS = {"handoff": handoff, "start of the command": start, "waiting for an agent": waiting}


def main() -> None:
    for name, measure in BENCHMARKS.items():
        print(f"{name:<24} {measure()}", flush=True)


if __name__ == "__main__":
    main()
