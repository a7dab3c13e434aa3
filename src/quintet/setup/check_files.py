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
from quintet.loop.decide.verify_blocks import looks_like_one

_WORD: Final = re.compile(r"[^\s\"'`;|&()<>={}$,:*?\[\]\\!]+")
_MODULE: Final = re.compile(r"\bpython[\d.]*(?:\s+-[^\s]+)*?\s+-m\s+([A-Za-z_]\w*)")
_PYTEST: Final = re.compile(r"\b(?:pytest|py\.test)\b")
_PYTHON: Final = re.compile(r"\bpython[\d.]*\b|\bpytest\b|\btox\b|\bnox\b")
_PACKAGE: Final = re.compile(r"\b(?:npm|pnpm|yarn|bun)\s+(?:test|t|run|exec)\b")
_MAKE: Final = re.compile(r"(?:^|[\s;&|(])g?make\b", re.MULTILINE)
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
    for glob, told in shadows(task_checks(task), settings).items():
        line = next((number for number, text in enumerate(lines, 1) if looks_like_one(text)), 1)
        yield Finding(line, f"{told}; {advice([glob])}", is_error=False)


def shadows(checks: Iterable[Check], settings: Settings) -> dict[str, str]:
    """What a check runs although it does not name it, and nothing protects: what to say of it, by its glob.

    A file that does not exist counts where the project protects others: an agent can create it.
    """
    protect, found = (*OWN_FILES, *settings.protect), dict[str, str]()
    for script in (check.script for check in checks):
        for path, why in _run_by_name(script):
            is_there = (settings.wd / path).exists()
            glob = f"{path}**" if path.endswith("/") else path
            if (is_there or settings.protect) and not matches(glob.replace("**", "x"), protect):
                found.setdefault(glob, f"{path} {why}" if is_there else f"{path}, if an agent creates it, {why}")
    return found


def _run_by_name(script: str) -> Iterator[tuple[str, str]]:
    """The files of a project that decide what a script does; those that may well be absent only where they can be."""
    for name in dict.fromkeys(_MODULE.findall(script)):
        for path in (f"{name}.py", f"{name}/"):
            yield path, f"is run instead of what the check calls with -m {name}"
    if _PYTEST.search(script):
        folders = {
            parent for word in _WORD.findall(script) for parent in Path(word).parents if ".." not in parent.parts
        }
        for folder in sorted({Path(), *(one for one in folders if not one.is_absolute())}):
            yield str(folder / "conftest.py"), "is run by pytest before the tests"
    if _PYTHON.search(script) and "PYTHONPATH" in script:
        yield "sitecustomize.py", "is run by Python before anything else"
    if _PACKAGE.search(script):
        yield "package.json", "decides what the check runs"
    if _MAKE.search(script):
        yield "Makefile", "decides what the check runs"


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
