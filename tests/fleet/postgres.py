"""A real PostgreSQL on a socket of its own, in a folder of its own; it can be stopped and started again."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.hermetic import find_on_machine

SECONDS = 60


@dataclass
class Postgres:
    """A database server that only this user can reach."""

    folder: Path
    user: str

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}@/postgres?host={self.folder}"

    def run(self, *words: str) -> None:
        """Run a program of PostgreSQL, which refuses to work for root."""
        prefix = ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups"] if os.getuid() == 0 else []
        with (self.folder / "log").open("ab") as log:
            subprocess.run([*prefix, *words], cwd=self.folder, check=True, timeout=SECONDS, stdout=log, stderr=log)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off -c max_connections=60"
        self.run(
            find_program("pg_ctl"),
            "start",
            "-w",
            "-D",
            f"{self.folder}/data",
            "-o",
            options,
            "-l",
            f"{self.folder}/log",
        )

    def stop(self) -> None:
        self.run(find_program("pg_ctl"), "stop", "-w", "-m", "immediate", "-D", f"{self.folder}/data")


def find_program(name: str) -> str:
    found = find_on_machine(name) or next(iter(sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))), "")
    assert found, f"{name} is not installed: apt-get install postgresql"
    return found


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Start a server, and end it."""
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    made = Postgres(Path(tempfile.mkdtemp(prefix="qpg", dir="/tmp")), user)
    try:
        if os.getuid() == 0:
            shutil.chown(made.folder, user, user)
        made.folder.chmod(0o711)
        (made.folder / "log").touch()
        if os.getuid() == 0:
            shutil.chown(made.folder / "log", user, user)
        made.run(find_program("initdb"), "-D", f"{made.folder}/data", "-U", user, "--auth=trust", "--no-sync")
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(made.folder, ignore_errors=True)
