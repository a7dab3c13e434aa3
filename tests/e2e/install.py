"""Fetches the real programs once, each into a folder of its own below `.e2e/` at the repository's root.

`python -m tests.e2e.install` fetches what `make e2e` needs, all at once; with `--all` also the rest. A test that is
started alone fetches what it needs.
"""

import fcntl
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.hermetic import find_on_machine, machine_environment

STORE = (Path(__file__).parents[2] / ".e2e").resolve()
"""Resolved, because the programs know their folders by their real names."""
PLATFORM = f"{sys.platform}-{({'x86_64': 'x64', 'aarch64': 'arm64'}).get(platform.machine(), platform.machine())}"
"""as npm names it in packages with native programs"""
NPM_FLAGS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
TAIL = 2000
CODEX, OLDER_CODEX, CLAUDE = "0.166.0", "0.149.0", "2.1.325"
DOWNLOADS = 4
"""at once: npm waits for the registry most of the time"""


class InstallError(RuntimeError):
    """One line that says what is missing or what failed."""


def ensure_codex(version: str) -> Path:
    """The `codex` program of that release."""
    return _ensure_npm("codex", "@openai/codex", version) / "node_modules/.bin/codex"


def ensure_claude(version: str) -> Path:
    """The `claude` program of that release."""
    modules = _ensure_npm("claude", "@anthropic-ai/claude-code", version) / "node_modules"
    # Newer releases ship a native program, which only the skipped install script would link into .bin.
    native = modules / "@anthropic-ai" / f"claude-code-{PLATFORM}" / "claude"
    return native if native.exists() else modules / ".bin/claude"


def ensure_gemini(version: str = "0.61.0") -> Path:
    """The `gemini` program of that release."""
    return _ensure_npm("gemini", "@google/gemini-cli", version) / "node_modules/.bin/gemini"


def ensure_opencode(version: str = "1.18.33") -> Path:
    """The `opencode` program of that release: a native one, which only the skipped install script would link."""
    return _ensure_npm("opencode", "opencode-ai", version) / f"node_modules/opencode-{PLATFORM}/bin/opencode"


def ensure_copilot(version: str = "1.0.102") -> Path:
    """The `copilot` program of that release: a native one, without the script that looks for it."""
    return _ensure_npm("copilot", "@github/copilot", version) / f"node_modules/@github/copilot-{PLATFORM}/copilot"


def ensure_qwen(version: str = "0.24.4", node: str = "22.23.3") -> Path:
    """The `qwen` program of that release, with a Node.js of its own: it wants a newer one than the others."""
    own_node = _ensure_npm("node", f"node-{PLATFORM}", node) / f"node_modules/node-{PLATFORM}/bin/node"
    folder = _ensure_npm("qwen", "@qwen-code/qwen-code", version)
    script = folder / "node_modules/@qwen-code/qwen-code/cli-entry.js"
    program = folder / "bin/qwen"
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        started = program.with_suffix(f".{os.getpid()}")
        started.write_text(f'#!/bin/sh\nexec {shlex.quote(str(own_node))} {shlex.quote(str(script))} "$@"\n')
        with suppress(FileExistsError):
            (started.parent / "node").symlink_to(own_node)  # on the PATH, so that a sandbox shows it
        started.chmod(0o755)
        started.rename(program)
    return program


def ensure_claude_acp(version: str = "0.49.0") -> Path:
    """The `claude-agent-acp` program of that release: Claude Code behind the Agent Client Protocol."""
    folder = _ensure_npm("claude-acp", "@agentclientprotocol/claude-agent-acp", version)
    return folder / "node_modules/.bin/claude-agent-acp"


def ensure_openspec(version: str = "1.13.2") -> Path:
    """The `openspec` program of that release."""
    return _ensure_npm("openspec", "@fission-ai/openspec", version) / "node_modules/.bin/openspec"


def ensure_cao(version: str = "2.5.4") -> Path:
    """The `cao-server` program of that release, in a virtual environment of its own."""
    with _folder(f"cao-{version}") as (folder, is_new):
        if is_new:
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([str(folder / "bin/pip"), "install", "--quiet", f"cli-agent-orchestrator=={version}"])
    return folder / "bin/cao-server"


def need(program: str, hint: str) -> Path:
    """Where a program of the system is."""
    found = find_on_machine(program)
    if found is None:
        raise InstallError(f"{program} was not found: install {hint}")
    return Path(found)


def need_node() -> Path:
    return need("node", "Node.js 20 or later (Debian: apt-get install nodejs npm)")


def need_tmux() -> Path:
    return need("tmux", "tmux 3.2 or later (Debian: apt-get install tmux)")


def _ensure_npm(name: str, package: str, version: str) -> Path:
    need_node()
    npm = need("npm", "npm, which comes with Node.js (Debian: apt-get install npm)")
    with _folder(f"{name}-{version}") as (folder, is_new):
        if is_new:
            _run([str(npm), "install", "--prefix", str(folder), *NPM_FLAGS, f"{package}@{version}"])
    return folder


@contextmanager
def _folder(name: str) -> Iterator[tuple[Path, bool]]:
    """The folder and whether it has to be filled; it counts as filled once the block has ended well."""
    STORE.mkdir(exist_ok=True)
    folder, complete = STORE / name, STORE / name / ".complete"
    with (STORE / f"{name}.lock").open("w") as lock:
        # Test workers side by side would install the same thing twice, into each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            yield folder, False
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder, True
        complete.touch()


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=machine_environment(), check=False
    )
    if done.returncode != 0:
        raise InstallError(f"{' '.join(command)} failed: {done.stdout.decode(errors='replace')[-TAIL:]}")


def install(*, everything: bool) -> None:
    """Fetch the programs side by side, the slowest first."""
    wanted: list[Callable[[], Path]] = [
        ensure_qwen,
        partial(ensure_codex, CODEX),
        partial(ensure_claude, CLAUDE),
        ensure_gemini,
        ensure_opencode,
        ensure_copilot,
        ensure_openspec,
    ]
    if everything:
        wanted = [ensure_cao, *wanted, ensure_claude_acp, partial(ensure_codex, OLDER_CODEX)]
    with ThreadPoolExecutor(DOWNLOADS) as pool:
        for done in [pool.submit(ensure) for ensure in wanted]:
            done.result()


if __name__ == "__main__":
    try:
        install(everything="--all" in sys.argv[1:])
    except InstallError as error:
        sys.exit(str(error))
