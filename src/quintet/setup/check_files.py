"""Files that the checks of a task rely on, and that agents may change."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from quintet.config import Settings
from quintet.guard.globs import matches
from quintet.layout import OWN_FILES, TMP
from quintet.loop.decide.checks import Check, task_checks
from quintet.loop.decide.lint import Finding
from quintet.loop.decide.markup import normalise

_WORD: Final = re.compile(r"[^\s\"'`;|&()<>={}$,:*?\[\]\\!]+")
_NOT_OURS: Final = frozenset({TMP.name, ".git"})


def unprotected(checks: Iterable[Check], settings: Settings) -> dict[str, str]:
    """The files and folders that scripts name and nothing protects: what to protect, by the word in the script."""
    protect = (*OWN_FILES, *settings.protect)
    words = (word for check in checks for word in _WORD.findall(check.script))
    found = {word: glob for word in dict.fromkeys(words) if (glob := _glob(word, settings.wd))}
    return {word: glob for word, glob in found.items() if not matches(glob.replace("**", "."), protect)}


def lint_checks(task: str, settings: Settings) -> Iterator[Finding]:
    """A warning for each file that a task's own checks rely on and that agents may change."""
    lines = normalise(task).split("\n")
    for word, glob in unprotected(task_checks(task), settings).items():
        line = next((number for number, text in enumerate(lines, 1) if word in _WORD.findall(text)), 1)
        told = f"the check names {word}, which agents may change; if the check relies on it: {advice([glob])}"
        yield Finding(line, told, is_error=False)


def advice(globs: Iterable[str]) -> str:
    """How to protect files."""
    return f'protect it with "guard": {json.dumps({"protect": list(globs)}, ensure_ascii=False)}'


def _glob(word: str, wd: Path) -> str:
    """What a word names in the project, as a glob; empty where it names nothing there."""
    try:
        path = (wd / word).resolve().relative_to(wd.resolve())
        if not path.parts or path.parts[0] in _NOT_OURS:
            return ""
        there = wd / path
        return f"{path}/**" if there.is_dir() else str(path) if there.is_file() else ""
    except (OSError, ValueError, RuntimeError):
        return ""
