"""Writes new task files, from the project's own template or the shipped one."""

from importlib import resources
from itertools import count
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import TaskError
from quintet.layout import TASK_SUFFIXES, TASK_TEMPLATE
from quintet.program import program
from quintet.prose import slug

FOLDER: Final = Path("tasks")
SLOT: Final = "<<task>>"


def shipped_template() -> str:
    return (resources.files(__package__) / "task-template.md").read_text(encoding="utf-8")


def new_task(sentence: str, wd: Path, path: Path | None = None) -> Path:
    """Write a task file that begins with a sentence; the rest of the template is left to be filled in."""
    sentence = " ".join(sentence.encode("utf-8", "replace").decode().split())
    if not sentence:
        raise TaskError(f'say in one line what you want, for instance: {program()} new "Add a --json option to report"')
    template = wd / TASK_TEMPLATE
    try:
        text = template.read_text(encoding="utf-8-sig") if template.exists() else shipped_template()
    except (OSError, UnicodeDecodeError):
        raise TaskError(f"{template}: cannot be read; correct or remove it") from None
    if SLOT not in text:
        raise TaskError(f"{template}: has no {SLOT}, where the task's first line belongs; add it or remove the file")
    return write_task(text.replace(SLOT, sentence), sentence, wd, path)


def free_task_path(title: str, wd: Path) -> Path:
    """A name in the project's folder of tasks that no file has."""
    names = (f"{slug(title) or 'task'}{f'-{number}' if number > 1 else ''}.md" for number in count(1))
    return next(path for name in names if not (path := wd / FOLDER / name).exists())


def write_task(text: str, title: str, wd: Path, path: Path | None = None) -> Path:
    """Write a new task file, by default in the project's folder of tasks; an older one stays."""
    target = path or wd / FOLDER / f"{slug(title) or 'task'}.md"
    if target.suffix.lower() not in TASK_SUFFIXES:
        raise TaskError(f"{target}: the name of a task file ends in {', '.join(TASK_SUFFIXES)}")
    try:
        files.write_new(target, text, None if path else wd, private=False)
    except FileExistsError:
        raise TaskError(f"{target}: exists already; choose another name with --output") from None
    except OSError as error:
        raise TaskError(f"{target}: cannot be written ({error.strerror})") from None
    return target
