"""The faults of the runs on real tmux: how each is prepared, strikes, and is mended again."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

from harness.chaos.books import STATE
from harness.chaos.real import plan as kinds
from harness.chaos.real.leftovers import processes_of
from harness.chaos.real.plan import Plan
from harness.chaos.real.proxy import Proxy
from quintet.server.tmux.servers import server_pid
from tests.stub.ordinary import without_root_powers
from tests.watch.scripted import Scripted

DISK: Final = "3m"
PAGE: Final = 4096
AWAY_SECONDS: Final = 2.0
TOKEN = "made-up-for-tests"


class CannotBeTried(Exception):  # noqa: N818 - reads as what it says
    """This machine does not let this fault be made."""


class Fault:
    """No fault at all; the kinds below change what they need to."""

    prefix: ClassVar[tuple[str, ...]] = ("env",)  # the program itself, with all of its start
    strikes: ClassVar[bool] = True

    def __init__(self, plan: Plan, project: Scripted) -> None:
        self.plan = plan
        self.project = project
        self.settings: dict[str, str] = {}

    def prepare(self) -> None:
        """Before the first start."""

    def strike(self, run: "subprocess.Popen[str]") -> None:
        """At the planned moment."""

    def mend(self) -> None:
        """Before the next start."""

    def close(self) -> None:
        """At the very end."""


class KillRun(Fault):
    def strike(self, run: "subprocess.Popen[str]") -> None:
        run.kill()


class TruncateState(KillRun):
    def mend(self) -> None:
        path = self.project.wd / STATE
        if path.exists():
            os.truncate(path, int(self.plan.size * path.stat().st_size))


class KillAgent(Fault):
    def strike(self, run: "subprocess.Popen[str]") -> None:
        wanted = f"--role {self.plan.role.name} "
        while run.poll() is None:
            found = [pid for pid, line in processes_of(self.project.root).items() if wanted in line]
            if found:
                os.kill(found[0], signal.SIGKILL)
                return
            time.sleep(0.01)


class KillTmux(Fault):
    def strike(self, run: "subprocess.Popen[str]") -> None:
        while run.poll() is None:
            found = [pid for path in self.project.root.glob("x/quintet/s/*") if (pid := server_pid(path))]
            if found:
                os.kill(found[0], signal.SIGKILL)
                return
            time.sleep(0.01)


class Served(Fault):
    """A run over a server of its own process."""

    def prepare(self) -> None:
        self.server = self._serve(0)
        assert self.server.stdout is not None
        self.url = self.server.stdout.readline().split()[-1]
        # a run knows the token of a server by its address, and may reach this one through a proxy
        self.settings |= {"API": self.url, "QUINTET_TOKEN": TOKEN}

    def _serve(self, port: int) -> "subprocess.Popen[str]":
        return self.project.start("serve", "--port", str(port), QUINTET_TOKEN=TOKEN)

    def close(self) -> None:
        self.server.terminate()
        self.server.wait()


class KillServer(Served):
    def strike(self, run: "subprocess.Popen[str]") -> None:  # noqa: ARG002
        self.server.kill()
        self.server.wait()
        time.sleep(AWAY_SECONDS * self.plan.size)
        self.server = self._serve(int(self.url.rpartition(":")[2]))


class FaultyApi(Served):
    def prepare(self) -> None:
        super().prepare()
        self.proxy = Proxy(self.url)
        self.settings["API"] = self.proxy.url

    def strike(self, run: "subprocess.Popen[str]") -> None:  # noqa: ARG002
        self.proxy.fail(self.plan.kind.removeprefix(kinds.API), 1 + int(4 * self.plan.size))

    def close(self) -> None:
        self.proxy.close()
        super().close()


class FullDisk(Fault):
    """The project on a small file system of its own, and then somebody fills it."""

    def prepare(self) -> None:
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(self.project.wd)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise CannotBeTried("mount is not installed") from None
        if done.returncode:
            raise CannotBeTried(f"a tmpfs cannot be mounted: {done.stderr.strip()}")

    @property
    def _filler(self) -> Path:
        return self.project.wd / "filler"

    def strike(self, run: "subprocess.Popen[str]") -> None:  # noqa: ARG002
        size = 0
        with self._filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                size += file.write(b"\0" * PAGE)
        os.truncate(self._filler, max(size - PAGE * int(3 * self.plan.size), 0))

    def mend(self) -> None:
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.project.wd)], capture_output=True, check=False)


class ClosedDirectory(Fault):
    prefix: ClassVar[tuple[str, ...]] = tuple(without_root_powers())

    def _folders(self) -> list[Path]:
        tmp = self.project.wd / ".tmp"
        runs = [path.parent for path in tmp.glob("*/journal.jsonl")]
        return [path for path in (self.project.wd, tmp, tmp / "agent-responses", *runs) if path.is_dir()]

    def strike(self, run: "subprocess.Popen[str]") -> None:  # noqa: ARG002
        folders = self._folders()
        folders[int(self.plan.size * len(folders))].chmod(0o555)

    def mend(self) -> None:
        for folder in self._folders():
            folder.chmod(0o755)

    def close(self) -> None:
        with suppress(OSError):
            self.mend()


class WrongTurn(Fault):
    """The scripted agent does it by itself."""

    strikes = False

    def prepare(self) -> None:
        self.settings["AUTO_ACCEPT_PERMISSIONS"] = "1"


_KINDS: Final[dict[str, type[Fault]]] = {
    kinds.KILLED: KillRun,
    kinds.SERVER_KILLED: KillServer,
    kinds.AGENT_KILLED: KillAgent,
    kinds.TMUX_KILLED: KillTmux,
    kinds.TRUNCATED: TruncateState,
    kinds.FULL: FullDisk,
    kinds.CLOSED: ClosedDirectory,
}


def fault_for(plan: Plan, project: Scripted) -> Fault:
    """The fault of a plan."""
    kind = FaultyApi if plan.kind.startswith(kinds.API) else WrongTurn if plan.kind.startswith(kinds.AGENT) else None
    return (kind or _KINDS[plan.kind])(plan, project)
