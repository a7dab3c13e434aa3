"""How agents of the Agent Client Protocol are started: rows in, a host's command line and its private file out."""

import json
from pathlib import Path

import pytest

from quintet.errors import ServerError
from quintet.providers.acp.agents import ACP_AGENTS, COPILOT, GEMINI, OPENCODE, QWEN, AcpAgent, own_agent
from quintet.providers.acp.host_settings import FILE, RECORD, HostSettings, InstructionsBy, ModelBy
from quintet.providers.acp.launch import find_conversation, plan
from quintet.providers.base import Launch, LaunchPlan

ROLE = "You are the tester.\nYou change nothing."


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with a program of each agent's name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for agent in ACP_AGENTS:
        program = folder / agent.program
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
    return folder


def launch_of(bin_folder: Path, **more: object) -> Launch:
    folder = bin_folder.parent / "terminal"
    folder.mkdir(exist_ok=True)
    env = {"PATH": str(bin_folder), **more.pop("env", {})}  # type: ignore[dict-item]
    return Launch("ab12cd34", "tester", ROLE, folder, bin_folder.parent, env, **more)  # type: ignore[arg-type]


def told(planned: LaunchPlan, folder: Path) -> HostSettings:
    """What the host reads."""
    (folder / FILE).write_text(planned.files[FILE])
    return HostSettings.read(folder)


def start(agent: AcpAgent, bin_folder: Path, **more: object) -> tuple[LaunchPlan, HostSettings]:
    launch = launch_of(bin_folder, **more)
    planned = plan(agent, launch)
    return planned, told(planned, launch.folder)


@pytest.mark.parametrize("agent", ACP_AGENTS, ids=lambda agent: agent.name)
def test_the_pane_runs_a_host_whose_command_line_tells_nothing(agent: AcpAgent, bin_folder: Path) -> None:
    planned, settings = start(agent, bin_folder)
    assert planned.argv[-2:] == ("quintet.providers.acp.host", str(bin_folder.parent / "terminal"))
    assert not any("tester" in word for word in planned.argv)
    assert settings.name == agent.name
    assert settings.role == "tester"
    assert settings.command[: 1 + len(agent.arguments)] == (str(bin_folder / agent.program), *agent.arguments)
    assert not settings.asks
    assert not planned.continues


def test_gemini_acts_without_asking_in_a_folder_that_nobody_has_trusted(bin_folder: Path) -> None:
    _, settings = start(GEMINI, bin_folder, model="gemini-x")
    assert settings.command[1:] == ("--acp", "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-x")
    assert (settings.mode, settings.model_by) == ("", ModelBy.PROGRAM)
    assert settings.instructions_by is InstructionsBy.FIRST_PROMPT
    assert settings.instructions == ROLE
    assert settings.load_in_next_minute


def test_asking_is_another_way_to_start(bin_folder: Path) -> None:
    _, settings = start(GEMINI, bin_folder, asks=True)
    assert (settings.command[1:], settings.asks) == (("--acp", "--approval-mode", "default"), True)


@pytest.mark.parametrize("args", [("--approval-mode", "plan"), ("--approval-mode=plan",), ("-y",)])
def test_permissions_among_the_users_arguments_are_the_only_ones(args: tuple[str, ...], bin_folder: Path) -> None:
    _, settings = start(GEMINI, bin_folder, args=args)
    assert settings.command[1:] == ("--acp", *args)
    assert settings.asks, "the host must not say yes in the user's place"


def test_opencode_gets_a_configuration_beside_the_users(bin_folder: Path) -> None:
    theirs = {"model": "loop/m1", "instructions": ["own.md"], "permission": {"bash": "deny"}, "theme": "x"}
    planned, settings = start(OPENCODE, bin_folder, env={"OPENCODE_CONFIG_CONTENT": json.dumps(theirs)})
    config = json.loads(planned.env["OPENCODE_CONFIG_CONTENT"] or "")
    role = bin_folder.parent / "terminal" / "role.md"
    assert config["instructions"] == ["own.md", str(role)]
    assert planned.files["role.md"] == ROLE
    assert (config["model"], config["theme"], config["permission"]) == ("loop/m1", "x", "allow")
    assert settings.instructions_by is InstructionsBy.PROGRAM


def test_a_model_is_part_of_opencodes_configuration(bin_folder: Path) -> None:
    planned, settings = start(OPENCODE, bin_folder, model="a/b", asks=True)
    config = json.loads(planned.env["OPENCODE_CONFIG_CONTENT"] or "")
    assert (config["model"], config["permission"]) == ("a/b", {"edit": "ask", "bash": "ask"})
    assert settings.model_by is ModelBy.PROGRAM


@pytest.mark.parametrize("theirs", ["{", "[1]", "[" * 100_000])
def test_a_configuration_that_is_none_stays_for_opencode_to_complain(theirs: str, bin_folder: Path) -> None:
    planned, _ = start(OPENCODE, bin_folder, env={"OPENCODE_CONFIG_CONTENT": theirs})
    assert planned.env["OPENCODE_CONFIG_CONTENT"] == theirs


def test_copilot_finds_the_role_in_a_folder_beside_the_users_own(bin_folder: Path) -> None:
    planned, settings = start(COPILOT, bin_folder, env={"COPILOT_CUSTOM_INSTRUCTIONS_DIRS": "/own"}, model="m")
    folder = bin_folder.parent / "terminal" / "instructions"
    assert planned.env["COPILOT_CUSTOM_INSTRUCTIONS_DIRS"] == f"/own,{folder}"
    (name,) = (name for name in planned.files if name.startswith("instructions/"))
    assert name.endswith(".github/instructions/role.instructions.md")
    assert planned.files[name].startswith("---\napplyTo: '**'\n---\n" + ROLE)
    assert settings.command[1:] == ("--acp", "--no-auto-update", "--allow-all", "--model", "m")
    assert (settings.error_prefix, settings.note_prefix) == ("Error: ", "Info: ")


def test_qwen_gets_the_role_as_an_argument(bin_folder: Path) -> None:
    _, settings = start(QWEN, bin_folder, args=("--debug",))
    assert settings.command[-3:] == ("--append-system-prompt", ROLE, "--debug")
    assert settings.command[1:4] == ("--acp", "--approval-mode", "yolo")


def test_an_agent_of_the_users_has_its_own_variables_mode_and_model(bin_folder: Path) -> None:
    agent = own_agent(
        "mine",
        command=["gemini", "acp"],
        env={"KEY": "secret"},
        mode="free",
        model="m1",
        instructions="system prompt",
    )
    planned, settings = start(agent, bin_folder)
    assert planned.env == {"KEY": "secret"}
    assert "secret" not in planned.files[FILE] + " ".join(planned.argv)
    assert settings.command == (str(bin_folder / "gemini"), "acp")
    assert (settings.mode, settings.model, settings.instructions_by) == ("free", "m1", InstructionsBy.SYSTEM_PROMPT)
    assert start(agent, bin_folder, model="m2")[1].model == "m2"


def test_folders_of_an_agent_are_where_its_user_has_put_them() -> None:
    assert OPENCODE.homes_in({}) == OPENCODE.homes
    moved = OPENCODE.homes_in({"XDG_DATA_HOME": "/data/", "XDG_CACHE_HOME": "/cache"})
    assert moved == ("~/.config/opencode", "/data/opencode", "~/.local/state/opencode", "/cache/opencode")
    assert COPILOT.homes_in({"COPILOT_HOME": "/own"})[:2] == ("/own", "~/.cache/copilot")


def test_a_path_begins_at_the_project_and_a_missing_program_is_named(bin_folder: Path) -> None:
    agent = own_agent("mine", command=["bin/gemini"], env={})
    assert start(agent, bin_folder)[1].command == (str(bin_folder / "gemini"),)
    missing = own_agent("mine", command=["nowhere"], env={}, install="pip install nowhere")
    with pytest.raises(ServerError, match=r"nowhere was not found on PATH; install it \(pip install nowhere\)"):
        start(missing, bin_folder)
    with pytest.raises(ServerError, match=r"its name is in providers\.mine\.command"):
        start(own_agent("mine", command=["nowhere"], env={}), bin_folder)


def record(folder: Path, *events: dict[str, object]) -> Path:
    path = folder / RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(event) + "\n" for event in events) + '{"event":"session","id":"torn')
    return path


SESSION = {"event": "session", "id": "s1", "at": 17.5, "loaded": False}
BEGIN = {"event": "begin", "turn": 1}


def test_a_conversation_goes_on(bin_folder: Path) -> None:
    previous = bin_folder.parent / "lost"
    record(previous, SESSION, BEGIN)
    planned, settings = start(QWEN, bin_folder, previous=previous)
    assert planned.continues
    assert (settings.session, settings.session_opened) == ("s1", 17.5)


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([], ""),
        ([SESSION], ""),
        ([SESSION, BEGIN], "s1"),
        ([SESSION | {"loaded": True}], "s1"),
        ([SESSION, BEGIN, SESSION | {"id": "s2"}], ""),
        ([{"event": "session", "id": 5}, BEGIN], ""),
        ([SESSION | {"at": "x"}, BEGIN], "s1"),
    ],
)
def test_only_a_conversation_with_a_prompt_in_it_goes_on(
    events: list[dict[str, object]], found: str, tmp_path: Path
) -> None:
    assert find_conversation(record(tmp_path, *events))[0] == found


@pytest.mark.parametrize("loaded", [False, True])
def test_a_conversation_that_can_be_loaded_once_goes_on_once(loaded: bool, bin_folder: Path) -> None:
    previous = bin_folder.parent / "lost"
    record(previous, SESSION | {"loaded": loaded}, BEGIN)
    planned, settings = start(GEMINI, bin_folder, previous=previous)
    assert (planned.continues, settings.session) == ((False, "") if loaded else (True, "s1"))


def test_without_a_record_there_is_no_conversation(tmp_path: Path) -> None:
    assert find_conversation(tmp_path / "none") == ("", 0.0)
