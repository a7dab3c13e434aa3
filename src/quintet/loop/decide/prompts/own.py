"""A folder of the user's own prompt texts: checked before a run, so that none stops in its middle."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from quintet import files
from quintet.errors import PromptError
from quintet.loop.decide.prompts.texts import shipped_texts, slots_of, text_of
from quintet.program import program
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER

AGAIN: Final = "tester_again"
ACTIONS: Final = "nothing_done"
CHANGES: Final = "changes_undone"
REMINDER: Final = "reminder"
RESPONSE_FILE: Final = "response_file"
LIMITS: Final = ("round", "max_rounds", "cycle", "max_cycles", "min_cycles")
"""slots that the text of every step may use"""
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    ANALYST.output: ("explore", RESPONSE_FILE),
    PEER_ANALYST.output: ("analyst_output", RESPONSE_FILE),
    PROGRAMMER.output: ("explore", "analyst_handoff", "test_feedback", RESPONSE_FILE),
    PEER_PROGRAMMER.output: ("programmer_output", RESPONSE_FILE),
    TESTER.output: ("scenario", RESPONSE_FILE),
    AGAIN: (RESPONSE_FILE,),
    ACTIONS: ("review", RESPONSE_FILE),
    CHANGES: ("review", "undone", RESPONSE_FILE),
    REMINDER: ("prompt_file", RESPONSE_FILE),
    RESPONSE_FILE: ("quoted_path", "marker"),
}
"""slots without which an agent could not do its part"""
VERDICTS: Final[Mapping[str, str]] = {
    PEER_ANALYST.output: "REVIEW_RESULT:",
    PEER_PROGRAMMER.output: "REVIEW_RESULT:",
    TESTER.output: "RESULT:",
    AGAIN: "RESULT:",
    ACTIONS: "RESULT:",
    CHANGES: "RESULT:",
}
"""the line that the reply is judged by; an agent that is not told of it never writes it"""


def check_own_texts(folder: str) -> None:
    """Refuse a folder with a fault in it."""
    faults = list(faults_of(folder))
    if faults:
        more = f" (and {len(faults) - 1} more; {program()} prompts check {folder} shows them all)" if faults[1:] else ""
        raise PromptError(f"{faults[0]}{more}")


def faults_of(folder: str) -> Iterator[str]:
    """One line for each fault of a folder with prompt texts."""
    try:
        paths = sorted(path for path in Path(folder).iterdir() if not path.name.startswith(".") and not path.is_dir())
    except OSError as error:
        hint = f"{program()} prompts export {folder} makes a folder with the shipped texts"
        yield f"prompts_dir: {folder} cannot be read ({error.strerror}); {hint}"
        return
    for path in paths:
        if path.stem not in shipped_texts() or path.suffix != ".md":
            yield f"prompt text {path}: there is no prompt of that name{_hint(path.stem)}"
            continue
        try:
            text = text_of(path.stem, folder)
        except PromptError as error:
            yield str(error)
            continue
        yield from (f"prompt text {path}: {fault}" for fault in _faults(path.stem, text))


def known_slots(name: str) -> frozenset[str]:
    """The slots that a text may use: those of the shipped one, and what every step knows of itself."""
    steps = LIMITS if name not in (REMINDER, RESPONSE_FILE) else ()
    return slots_of(text_of(name)) | frozenset(steps)


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), shipped_texts(), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}.md?" if near else f"; there are {', '.join(f'{n}.md' for n in shipped_texts())}"


def _faults(name: str, text: str) -> Iterator[str]:
    used, known = slots_of(text), known_slots(name)
    for slot in sorted(used - known):
        yield f"unknown slot {{{{{slot}}}}}; known are {', '.join(sorted(known))}"
    for slot in NEEDED[name]:
        if slot not in used:
            yield f"the slot {{{{{slot}}}}} is missing; without it the agent could not do its part"
    verdict = VERDICTS.get(name)
    if verdict and verdict not in text:
        yield f'it does not ask for the line "{verdict} ...", by which the reply is judged'


def shipped_text(name: str) -> str:
    """A shipped text by the name that a user gives."""
    name = name.removesuffix(".md")
    if name not in shipped_texts():
        raise PromptError(f'there is no prompt "{name[:64]}"{_hint(name)}')
    return text_of(name)


def export_texts(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write shipped texts into a folder; a file that differs from ours is somebody's and stays."""
    chosen = [name.removesuffix(".md") for name in names] or shipped_texts()
    targets = {folder / f"{name}.md": shipped_text(name) for name in chosen}
    try:
        for path, text in targets.items():
            if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
                raise PromptError(f"{path}: is there already and differs; move it away or choose another folder")
        for path, text in targets.items():
            files.write(path, text, private=False)
    except OSError as error:
        raise PromptError(f"{error.filename or folder}: cannot be written ({error.strerror})") from None
    return list(targets)
