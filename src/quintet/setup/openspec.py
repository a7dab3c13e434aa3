"""OpenSpec in a project: checks whether it is set up with the workflows that the prompts use, and sets it up."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from quintet import command, files
from quintet.errors import RunError
from quintet.providers.registration import OpenSpecTool
from quintet.providers.registry import REGISTERED

PROGRAM: Final = "openspec"
INSTALL: Final = "npm install -g @fission-ai/openspec"
WORKFLOWS: Final = {"explore": "openspec-explore", "ff": "openspec-ff-change", "apply": "openspec-apply-change"}
"""the workflows that the prompts name, each with its skill"""
_SECONDS: Final = 120.0
_QUIET: Final = {"OPENSPEC_TELEMETRY": "0", "NO_COLOR": "1"}


TOOLS: Final = {name: agent.openspec for name, agent in REGISTERED.items() if agent.openspec}
"""by provider"""


def is_set_up(wd: Path) -> bool:
    return (wd / "openspec").is_dir()


def missing_workflows(wd: Path, providers: Iterable[str]) -> dict[str, list[str]]:
    """The workflows that are missing, by provider."""
    tools = {name: TOOLS[name] for name in providers if name in TOOLS}
    found = {name: [one for one in WORKFLOWS if not _has(wd, tool, one)] for name, tool in tools.items()}
    return {name: missing for name, missing in found.items() if missing}


def _has(wd: Path, tool: OpenSpecTool, workflow: str) -> bool:
    """Whether a project has a workflow for a tool, as a skill or as a command."""
    places = [wd / folder / WORKFLOWS[workflow] / "SKILL.md" for folder in tool.skills]
    return any(path.exists() for path in [*places, wd / Path(tool.commands.format(workflow)).expanduser()])


def version() -> str:
    """The version of OpenSpec; empty where it is not installed."""
    if shutil.which(PROGRAM) is None:
        return ""
    outcome = command.run([PROGRAM, "--version"], Path.cwd(), _SECONDS, _QUIET)
    return outcome.last_line.strip() or "unknown version"


def set_up(wd: Path, providers: Iterable[str]) -> list[Path]:
    """Set OpenSpec up for some agents; returns the files that were added.

    OpenSpec runs in a temporary folder, and only missing files are copied, because it would overwrite files that the
    user has changed. The fast-forward workflow needs a profile of its own, which is temporary too.
    """
    tools = ",".join(TOOLS[name].name for name in providers if name in TOOLS) or "none"
    with tempfile.TemporaryDirectory(prefix="quintet-openspec-") as place:
        settings = Path(place) / "config" / "openspec" / "config.json"
        files.write(settings, json.dumps({"profile": "custom", "delivery": "both", "workflows": [*WORKFLOWS]}))
        added = []
        for name, more in {"users": {}, "ours": {"XDG_CONFIG_HOME": str(settings.parent.parent)}}.items():
            made = Path(place) / name
            files.make_folder(made)
            outcome = command.run([PROGRAM, "init", "--tools", tools, "."], made, _SECONDS, _QUIET | more)
            if outcome.exit_code:
                by_hand = f"try it by hand: openspec init --tools {tools}"
                raise RunError(f"openspec init failed: {outcome.last_line}; {by_hand}")
            added += _copy_missing(made, wd)
        return added


def _copy_missing(source: Path, target: Path) -> list[Path]:
    added = []
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir() or os.path.lexists(place):
            continue
        try:
            files.write_new(place, path.read_bytes(), target, private=False)
        except OSError as error:
            raise RunError(f"{place}: cannot be written ({error.strerror})") from None
        added.append(place)
    return added
