"""Every file and folder name of a project and of its runs, spelled once."""

from pathlib import Path
from typing import Final

from quintet.roles import Role

CONFIG_FILE: Final = "quintet.json"
TMP: Final = Path(".tmp")
"""below the project: everything of a run that people and tools look at"""
RESPONSE_DIR: Final = TMP / "agent-responses"
PID_FILE: Final = TMP / "quintet.pid"
DISCOVERY: Final = TMP / "server.json"
LONGEST_WORD: Final = 4096
"""bytes that are read of a file with which a process says where it is"""
"""where the server of a run says how to reach it"""
STATE: Final = "quintet-state.json"
STATE_FILE: Final = TMP / STATE
JOURNAL: Final = "journal.jsonl"
PROMPTS: Final = "prompts"
CHANGES: Final = "changes.json"
"""what a run has changed in the repository, kept at its end"""
REPORT_MARKDOWN: Final = "report.md"
REPORT_HTML: Final = "report.html"


def run_folder(wd: Path, run_id: str) -> Path:
    """The archive of a run."""
    return wd / TMP / run_id


def response_path_for(role: Role, wd: Path) -> Path:
    """The file that a role writes its response to."""
    return wd / RESPONSE_DIR / role.response_file
