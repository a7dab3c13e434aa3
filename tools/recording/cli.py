"""The two CLIs as the recorder starts them: each with a home that asks no more than it must."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.e2e.home import clean_environment, make_home
from tests.e2e.install import ensure_claude, ensure_codex
from tools.recording.pane import Pane

KEY = "sk-ant-api03-scripted-model-needs-no-key-0000"
MODEL_DIALOG = "Use existing model"
DIALOGS = (
    (MODEL_DIALOG, ("Down", "Enter")),
    ("Do you want to use this API key", ("Up", "Enter")),
    ("Yes, I accept", ("Down", "Enter")),
    ("Hooks need review", ("Escape",)),
    ("Press Enter to continue", ("Enter",)),
)
"""What a release may ask at its start although its home answers it, and the keys that go on."""
START_SECONDS = 40.0


@dataclass(frozen=True)
class Cli:
    version: str
    program: Path

    name: ClassVar[str]
    quit_command: ClassVar[str]

    @staticmethod
    def install(version: str) -> Path:
        raise NotImplementedError

    @property
    def programs(self) -> Sequence[Path]:
        return [self.program]

    def make_home(self, model_url: str) -> Path:
        raise NotImplementedError

    def environment(self, home: Path, model_url: str) -> dict[str, str]:  # noqa: ARG002 - for those that need it
        return clean_environment(home, self.programs)

    def command(self, *, unattended: bool, cols: int) -> str:
        raise NotImplementedError

    def start(self, pane: Pane, *, unattended: bool, on_model_dialog: Callable[[], None]) -> None:
        """Types the command, answers what is asked and waits until typed text is shown."""
        pane.send(self.command(unattended=unattended, cols=pane.size[0]))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            time.sleep(1.5)
            if not pane.is_raw():
                continue
            text = pane.text()
            keys = next((keys for words, keys in DIALOGS if words in text), None)
            if keys:
                if MODEL_DIALOG in text:
                    on_model_dialog()
                pane.key(*keys)
                continue
            pane.type("zq")
            time.sleep(0.5)
            if "zq" in pane.text():
                pane.key("C-u")
                time.sleep(1.0)
                return
        raise TimeoutError(f"{self.name} {self.version} did not start:\n{pane.text()}")


class Codex(Cli):
    name = "codex"
    quit_command = "/quit"

    @staticmethod
    def install(version: str) -> Path:
        return ensure_codex(version)

    def make_home(self, model_url: str) -> Path:
        home = make_home(model_url, [], self.programs)
        project = home / "proj"
        project.mkdir()
        config = home / ".codex/config.toml"
        trust = f'[projects.{json.dumps(str(project))}]\ntrust_level = "trusted"\n'
        config.write_text(config.read_text() + trust)
        # The newer releases have no policy that asks for each command, but rules for single ones.
        (home / ".codex/rules").mkdir()
        (home / ".codex/rules/default.rules").write_text('prefix_rule(pattern=["touch"], decision="prompt")\n')
        return home

    def command(self, *, unattended: bool, cols: int) -> str:
        known = subprocess.run([str(self.program), "--help"], capture_output=True, check=True).stdout.decode()
        asking = "untrusted" if "untrusted" in known else "on-request"
        flags = ["--dangerously-bypass-approvals-and-sandbox"] if unattended else ["-a", asking, "-s", "read-only"]
        # A background daemon would outlive the recording.
        flags += [flag for flag in ("--no-daemon",) if flag in known]
        # Both kinds of screen belong in a set.
        flags += [flag for flag in ("--no-alt-screen",) if flag in known and cols == 120]
        return shlex.join(["codex", *flags])


class Claude(Cli):
    name = "claude"
    quit_command = "/exit"

    @staticmethod
    def install(version: str) -> Path:
        return ensure_claude(version)

    def make_home(self, model_url: str) -> Path:
        home = make_home(model_url, [], self.programs)
        project = home / "proj"
        project.mkdir()
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(project): trusted},
        }
        (home / ".claude.json").write_text(json.dumps(settings))
        (home / ".claude").mkdir()
        (home / ".claude/settings.json").write_text(json.dumps({"skipDangerousModePermissionPrompt": True}))
        return home

    def environment(self, home: Path, model_url: str) -> dict[str, str]:
        return super().environment(home, model_url) | {
            "ANTHROPIC_BASE_URL": model_url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def command(self, *, unattended: bool, cols: int) -> str:  # noqa: ARG002 - the width is Codex's affair
        if unattended:
            return "claude --dangerously-skip-permissions"
        known = subprocess.run([str(self.program), "--help"], capture_output=True, check=True).stdout.decode()
        return "claude --permission-mode manual" if '"manual"' in known else "claude --permission-mode default"


CLIS: dict[str, type[Cli]] = {"codex": Codex, "claude": Claude}
