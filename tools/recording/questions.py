"""The scenarios in which the program asks its user."""

import time

from tests.e2e.exchange import Reply
from tools.recording.answers import PLAIN
from tools.recording.recorder import LASTING, Recorder, make_repository, programs

PATCH = """\
apply_patch <<'END_OF_PATCH'
*** Begin Patch
*** Add File: hello.py
+def hello():
+    return "hello"
*** End Patch
END_OF_PATCH"""


def approvals(recorder: Recorder) -> None:
    made = recorder.home / "proj/made.txt"
    key = "Make the file"
    recorder.ask(key, Reply.run("touch made.txt", delay=1), Reply.say(PLAIN, delay=1))
    time.sleep(2 + LASTING)
    recorder.take(
        "waiting_user_answer", "approval_command", lambda: not made.exists() and len(recorder.script.requests(key)) == 1
    )
    recorder.pane.key("Enter")
    recorder.ended("after_approval", recorder.script.wait_for(key, step=1))
    long = " &&\n".join(f"touch line_{number}_of_a_command_that_the_dialog_has_to_show" for number in range(1, 16))
    key = "Write the notes"
    recorder.ask(key, Reply.run(long), Reply.say(PLAIN))
    time.sleep(1 + LASTING)
    recorder.take("waiting_user_answer", "approval_long_command", lambda: len(recorder.script.requests(key)) == 1)
    recorder.pane.key("Escape")
    time.sleep(LASTING)
    recorder.take("interrupted", "approval_denied", lambda: len(recorder.script.requests(key)) == 1)


def edit(recorder: Recorder) -> None:
    """A file that the agent wants to write. Its program is one whose sandbox does not let it."""
    made = recorder.home / "proj/hello.py"
    key = "Add the function"
    wish = {"file_path": str(made), "content": 'def hello():\n    return "hello"\n'}
    ask = Reply.run(PATCH) if recorder.cli.name == "codex" else Reply(tool="Write", arguments=wish)
    recorder.ask(key, ask, Reply.say(PLAIN))
    time.sleep(1 + LASTING)
    recorder.take(
        "waiting_user_answer", "approval_edit", lambda: not made.exists() and len(recorder.script.requests(key)) == 1
    )
    recorder.pane.key("Escape")
    time.sleep(LASTING)


def question(recorder: Recorder) -> None:
    """Only Claude Code has a tool that asks."""
    if recorder.cli.name != "claude":
        return
    options = [
        {"label": "SQLite", "description": "One file, no server"},
        {"label": "PostgreSQL", "description": "A server, better concurrency"},
    ]
    asked = {"question": "Which database should it use?", "header": "Database", "multiSelect": False}
    key = "Ask me something"
    arguments = {"questions": [{**asked, "options": options}]}
    recorder.ask(key, Reply(tool="AskUserQuestion", arguments=arguments), Reply.say(PLAIN))
    time.sleep(1 + LASTING)
    recorder.take("waiting_user_answer", "question", lambda: len(recorder.script.requests(key)) == 1)
    recorder.pane.key("Escape")
    time.sleep(LASTING)


def trust(recorder: Recorder) -> None:
    """The start in a folder that the home does not know."""
    unknown = recorder.home / "other"
    unknown.mkdir()
    make_repository(unknown)
    recorder.pane.send("cd ../other; clear")
    recorder.pane.send(recorder.cli.command(unattended=False, cols=recorder.pane.size[0]))
    time.sleep(8)
    if "trust" in recorder.pane.text().lower():
        recorder.take("waiting_user_answer", "trust_dialog", lambda: bool(programs(recorder)))
