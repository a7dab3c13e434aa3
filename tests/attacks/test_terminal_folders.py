"""What an agent can do to the folder of its own terminal, where its prompts, its settings and its record are."""

from collections.abc import Iterator

import pytest

from tests.sandbox.boxed import Boxed, boxed_terminals

SAVED = [{"save_prompt": "prompt.txt"}, {"reply": "ok"}]


@pytest.fixture
def boxed() -> Iterator[Boxed]:
    with boxed_terminals() as made:
        (made.home / ".profile").write_text("the profile")
        yield made


def own_folder(boxed: Boxed) -> str:
    """The shell words that find the terminal's folder from inside."""
    return f"$(ls -d {boxed.rig.state_folder.terminals}/*/$QUINTET_TERMINAL)"


def prompt_after(boxed: Boxed, command: str) -> str:
    """What arrives as the second prompt, when the agent has run a command in its first turn."""
    terminal = boxed.terminal([[{"run": command}, {"reply": "ok"}], SAVED])
    boxed.rig.ask(terminal, "go")
    assert boxed.rig.ask(terminal, "the next prompt") == "ok"
    return (boxed.rig.wd / "prompt.txt").read_text()


def test_a_prompt_is_not_written_through_a_link(boxed: Boxed) -> None:
    """Finding 2: `input` is a link to a file at home."""
    assert prompt_after(boxed, f"ln -sfn {boxed.home}/.profile {own_folder(boxed)}/input") == "the next prompt"
    assert (boxed.home / ".profile").read_text() == "the profile"


def test_no_file_is_pasted_in_place_of_the_prompt(boxed: Boxed) -> None:
    """Finding 3: `input` is swapped for a link to a key while the server writes it."""
    key, folder = boxed.home / ".ssh" / "id_ed25519", own_folder(boxed)
    swap = f"cd {folder} && (while :; do ln -sf {key} input 2>/dev/null; done) </dev/null >/dev/null 2>&1 &"
    assert prompt_after(boxed, swap) == "the next prompt"
    assert key.read_text() == "the key"


@pytest.mark.attacks
@pytest.mark.parametrize(
    "command",
    [
        "cd {folder}/.. && mv $QUINTET_TERMINAL other && ln -s {home} $QUINTET_TERMINAL",
        "rm -rf {folder}; ln -s {home} {folder}",
        "mkdir -p {folder}/input",
        "mkfifo {folder}/input",
        "cd {folder} && for name in *; do ln -sfn {home}/.profile $name; done",
        "rm -rf {folder}/own; ln -s {home} {folder}/own",
        "chmod -R 000 {folder}",
    ],
)
def test_the_folder_cannot_be_replaced(boxed: Boxed, command: str) -> None:
    """Findings 2 and 3: other ways to put something in the prompt's place."""
    order = command.format(folder=own_folder(boxed), home=boxed.home)
    terminal = boxed.terminal([[{"run": order}, {"reply": "ok"}], SAVED])
    boxed.rig.send(terminal, "go")
    boxed.rig.send(terminal, "the next prompt")  # an agent that has removed its own record may not get it
    saved = boxed.rig.wd / "prompt.txt"
    assert not saved.exists() or saved.read_text() == "the next prompt"
    assert (boxed.home / ".profile").read_text() == "the profile"
    assert not (boxed.home / "input").exists()


def record_of(boxed: Boxed) -> str:
    """The shell words that find the terminal's record from inside."""
    return f"$(find {own_folder(boxed)} -name record.jsonl)"


@pytest.mark.parametrize(
    "command",
    [
        "rm $R; mkfifo $R",
        pytest.param("ln -sf /dev/zero $R", marks=pytest.mark.attacks),
        pytest.param("rm $R; mkdir $R", marks=pytest.mark.attacks),
        pytest.param("rm $R; truncate -s 1T $R", marks=pytest.mark.attacks),
        pytest.param("O=$(dirname $R); rm -rf $O/* ; mkfifo $O/hooks.jsonl $O/record.jsonl", marks=pytest.mark.attacks),
    ],
)
def test_the_server_answers_whatever_the_record_is(boxed: Boxed, command: str) -> None:
    """Finding 26: the agent's record is a FIFO, or something that never ends."""
    order = f"R={record_of(boxed)}; {command}; sleep 100 & exec 2>/dev/null; true"
    terminal = boxed.terminal([[{"run": order}, {"hang": True}]])
    boxed.rig.http.timeout = 20
    boxed.rig.send(terminal, "go")
    beside = boxed.terminal(["true"], session="u")
    assert boxed.rig.ask(beside, "go").startswith("0:"), "another terminal of the same server"
    assert boxed.rig.get(terminal)["id"] == terminal


@pytest.mark.attacks
def test_the_record_is_not_read_behind_a_link(boxed: Boxed) -> None:
    """Finding 26: the record is a link to a file that has what a record would have."""
    forged = boxed.home / "forged.jsonl"
    forged.write_text('{"event": "begin", "turn": 9}\n{"event": "end", "turn": 9, "reply": "a secret"}\n')
    order = f"R={record_of(boxed)}; ln -sf {forged} $R"
    terminal = boxed.terminal([[{"run": order}, {"reply": "ok"}]])
    boxed.rig.send(terminal, "go")
    boxed.rig.until(terminal, "completed", "idle")
    assert "a secret" not in boxed.rig.last(terminal)


def test_the_terminal_of_a_run_without_a_sandbox_gets_its_prompt_by_standard_input(boxed: Boxed) -> None:
    """Finding 3: tmux is never told to read a file that an agent could have put there."""
    rig = boxed.rig
    swap = "cd $(ls -d {}/*/$QUINTET_TERMINAL) && (while :; do ln -sf {} input; done) </dev/null >/dev/null 2>&1 &"
    order = swap.format(rig.state_folder.terminals, boxed.home / ".ssh" / "id_ed25519")
    terminal = rig.terminal([[{"run": order}, {"reply": "ok"}], SAVED])
    rig.ask(terminal, "go")
    assert rig.ask(terminal, "the next prompt") == "ok"
    assert (rig.wd / "prompt.txt").read_text() == "the next prompt"
    assert (boxed.home / ".ssh" / "id_ed25519").read_text() == "the key"
