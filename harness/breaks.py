# ruff: noqa: E501 - a row of the table is a line
"""Break the product on purpose, one line at a time, and check that a test fails: `python -m harness.breaks`."""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SECONDS: Final = 900.0
"""for the tests of one break; the whole suite may take four times as long"""
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\])?)(?: - |$)", re.MULTILINE)
NO_TESTS: Final = 5
"""pytest's exit code if it has selected no test"""


@dataclass(frozen=True)
class Break:
    """A plausible bug: a text that occurs once in a file below src/quintet, and its replacement."""

    name: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]
    """the modules or folders below tests/ that notice it, enough to judge it in seconds"""


BREAKS: Final = (
    Break("no-fsync", "files.py", "os.fsync(file.fileno())\n            os.replace", "file.fileno()\n            os.replace", ("loop/decide/test_state.py",)),
    Break("hooks-always-run", "git.py", "() if hooks else _NO_HOOKS", "_NO_HOOKS if hooks else ()", ("test_git.py",)),
    Break("error-exits-0", "cli/main.py", 'quintet: {error}")\n        code = 1', 'quintet: {error}")\n        code = 0', ("cli/test_config.py",)),
    Break("sandbox-not-required", "execute.py", "    refuse_without_sandbox(settings)\n", "", ("test_execute.py",)),
    Break("young-files-are-old", "setup/leftovers.py", "lstat().st_mtime > (", "lstat().st_mtime < (", ("setup/test_leftovers.py",)),
    Break("empty-variable-counts", "config/load.py", "for row in TABLE if env.get(row.env)}", "for row in TABLE if row.env in env}", ("config",)),
    Break("approved-one-cycle-late", "loop/decide/gate.py", "elif cycle < least:", "elif cycle <= least:", ("loop/decide",)),
    Break("serious-change-counts", "loop/decide/judging.py", "violation.serious and violation.undone", "violation.serious and not violation.undone", ("loop/decide",)),
    Break("told-before-saved", "loop/record/store.py", "            self._save()\n            for event in events:\n                self.emit(event)\n", "            for event in events:\n                self.emit(event)\n            self._save()\n", ("loop/record/test_store.py",)),
    Break("lock-is-shared", "loop/record/lock.py", "not files.try_lock(descriptor, shared=shared)", "not files.try_lock(descriptor, shared=True)", ("loop/record/test_lock.py",)),
    Break("one-reminder-more", "loop/run/waiting.py", "self.reminders < self.settings", "self.reminders <= self.settings", ("loop/run/test_waiting.py",)),
    Break("error-500-was-not-sent", "api/client.py", "raise OutcomeUnknown(f\"{what}: answered", "raise PassingFault(f\"{what}: answered", ("api",)),
    Break("quote-not-escaped", "server/tmux/connection.py", "text.replace(\"'\", \"'\\\\''\")", "text", ("server/test_tmux.py",)),
    Break("last-prompt-typed-again", "server/terminal/input.py", "if dispatch and dispatch in terminal.facts.dispatches:", "if dispatch and dispatch in terminal.facts.dispatches[:-1]:", ("server/test_input.py",)),
    Break("same-site-let-in", "server/http/access.py", 'site not in ("none", "same-origin")', 'site not in ("none", "same-site", "same-origin")', ("server/test_security.py",)),
    Break("codex-old-turn-counts", "providers/codex/record.py", "self.begun < 0 or self.begun < position", "self.begun < 0", ("providers/test_codex_record.py",)),
    Break("claude-failure-lost", "providers/claude_code/record.py", "message=None, failure=_reason(event, message)", "message=None, failure=None", ("providers/test_claude_record.py",)),
    Break("acp-torn-line-read", "providers/acp/json_rpc.py", "whole = self._size + len(end) <= self._longest", "whole = len(end) <= self._longest", ("providers/acp/test_json_rpc.py",)),
    Break("ended-run-still-counts", "watch/runs/model.py", "- self.ended if self.is_running else 0.0", "- self.ended", ("watch",)),
    Break("git-hooks-writable", "sandbox/private_git.py", 'Mount(path / "hooks", Access.READ,', 'Mount(path / "hooks", Access.WRITE,', ("sandbox/test_private_git.py",)),
    Break("undo-overwrites", "guard/undo.py", "_carry_out(plan, store, force=force)", "_carry_out(plan, store, force=True)", ("guard/test_killed.py",)),
    Break("commits-discarded", "workspace/removing.py", 'if with_commits else ""', 'if not with_commits else ""', ("workspace/test_discarding.py",)),
    Break("account-over-limit", "fleet/choosing.py", ">= limit:", "> limit:", ("fleet/test_choosing.py",)),
    Break("change-without-token", "fleet/database.py", " AND COALESCE(owner_xid, '') = :token", " AND :token = :token", ("fleet/test_database.py",)),
    Break("demo-stays-broken", "demo/script.py", '[a-z0-9]+", plain.lower()', '[a-z0-9]+", title.lower()', ("cli/test_demo.py",)),
)  # fmt: skip


class Copy:
    """A copy of a repository, with a virtual environment in which the copy is the installed Quintet."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.folder = folder
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(words, cwd=repository, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            if (repository / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(repository / name, folder / name)
        self._python = self._install(repository if (repository / ".venv").is_dir() else ROOT)
        self._writes = 0

    def _install(self, installed: Path) -> Path:
        """Make the environment. Unlike PYTHONPATH it also reaches programs that tests start with a bare environment."""
        packages = next((installed / ".venv").glob("lib/python*/site-packages"))
        venv.create(self.folder / ".venv", symlinks=True)
        python = self.folder / ".venv/bin/python"
        own = next((self.folder / ".venv").glob("lib/python*/site-packages"))
        own.joinpath("copy.pth").write_text(f"{self.folder}/src\n{packages}\n", encoding="utf-8")
        for program in (installed / ".venv/bin").iterdir():
            if not (python.parent / program.name).exists() and program.read_bytes().startswith(b"#!"):
                text = program.read_text(encoding="utf-8").partition("\n")[2]
                (python.parent / program.name).write_text(f"#!{python}\n{text}", encoding="utf-8")
                (python.parent / program.name).chmod(0o755)
        words = [str(python), "-c", "import quintet; print(quintet.__file__)"]
        found = subprocess.run(words, cwd="/", env={}, check=True, capture_output=True, text=True).stdout
        assert Path(found).is_relative_to(self.folder), f"the tests would use {found}"
        return python

    @contextmanager
    def broken(self, one: Break) -> Iterator[None]:
        """Apply a break for a while."""
        path = self.folder / "src/quintet" / one.file
        before = path.read_text(encoding="utf-8")
        self._write(path, before.replace(one.text, one.replacement))
        try:
            yield
        finally:
            self._write(path, before)

    def _write(self, path: Path, text: str) -> None:
        """Write a source file with a time of its own: Python compares whole seconds and the size."""
        path.write_text(text, encoding="utf-8")
        self._writes += 1
        os.utime(path, (0, time.time() + 10 * self._writes))

    def failing_test(self, *words: str, unit: bool = False) -> str:
        """Run pytest until the first failure, and return the name of the test that failed, if any."""
        command = [str(self._python), "-m", "pytest", "-x", "-q", "-rfE", "--no-header", "-p", "no:cacheprovider"]
        command += ["--unit"] if unit else []
        env = os.environ | ({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if unit else {})
        done = subprocess.run(
            [*command, *words],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS * (4 if "tests" in words else 1),
        )
        if done.returncode in (0, NO_TESTS):
            return ""
        found = FAILED.search(done.stdout)
        assert found, f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return found[1]

    def noticed_by(self, one: Break, paths: Sequence[str]) -> str:
        """Return the first test that fails with a break and passes without it.

        In folders the fast lane comes first, because it takes seconds. A module that is named would be collected even
        if it is not in the fast lane, and would fail there for starting a process.
        """
        folders = [path for path in paths if not path.endswith(".py")]
        skipped: list[str] = []
        while True:
            words = [word for test in skipped for word in ("--deselect", test)]
            with self.broken(one):
                test = self.failing_test(*folders, *words, unit=True) if folders else ""
                test = test or self.failing_test(*paths, *words)
            if test in skipped:
                return ""  # its module cannot even be loaded
            if not test or not self.failing_test(test):
                return test
            skipped.append(test)


def occurrences(one: Break, repository: Path = ROOT) -> int:
    """Count how often the text of a break occurs in its file."""
    path = repository / "src/quintet" / one.file
    return path.read_text(encoding="utf-8").count(one.text) if path.is_file() else 0


def main() -> int:
    """Judge the breaks, and return 1 if a break was not noticed or could not be applied."""
    parser = argparse.ArgumentParser(prog="python -m harness.breaks", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="only this break (repeatable)")
    parser.add_argument("--repository", metavar="PATH", type=Path, default=ROOT, help="break another checkout")
    parser.add_argument("--all", action="store_true", help="run the whole suite instead of the named tests")
    wish = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the copy is removed then
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell lets background programs ignore it, and tests too
    repository = wish.repository.resolve()
    chosen = [one for one in BREAKS if not wish.only or one.name in wish.only]
    bad = 0
    print("| break | file | noticed by | seconds |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="quintet-breaks-") as folder:
        copy = Copy(repository, Path(folder))
        for one in chosen:
            begun, row = time.monotonic(), judge(one, copy, repository, whole=wish.all)
            bad += row.startswith("**")
            print(f"| {one.name} | {one.file} | {row} | {time.monotonic() - begun:.0f} |", flush=True)
    print(f"\n{len(chosen) - bad} of {len(chosen)} breaks noticed")
    return bool(bad or not chosen)


def judge(one: Break, copy: Copy, repository: Path, *, whole: bool) -> str:
    """Return the test that notices a break, or in bold why none does."""
    if (count := occurrences(one, repository)) != 1:
        return f"**the text occurs {count} times**"
    named = (f"tests/{name}" for name in one.tests)
    # another checkout may not have a module yet: then all of its folder is run
    paths = [name if (repository / name).exists() else str(Path(name).parent) for name in named]
    try:
        test = copy.noticed_by(one, ["tests"] if whole else paths)
    except subprocess.TimeoutExpired as error:
        return f"**not judged: no end within {error.timeout:.0f} s**"
    return f"`{test}`" if test else "**nothing**"


if __name__ == "__main__":
    sys.exit(main())
