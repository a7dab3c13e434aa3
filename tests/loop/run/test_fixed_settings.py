"""The settings of a run are fixed when it begins; what somebody edits before a resume counts from the next run on."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from quintet.config.load import Kept, load_settings, settings_as_json, settings_to_keep
from tests.stub.project import ONE_PASS
from tests.stub.simulated import SimulatedProject


def configure(project: SimulatedProject, **values: object) -> None:
    (project.wd / "quintet.json").write_text(json.dumps(values), encoding="utf-8")


def killed(project: SimulatedProject, **settings: Any) -> None:
    """Kill a run while its programmer is at work."""
    project.stop_at(3, **settings)


def words(text: str) -> str:
    return " ".join(text.split())


def test_an_edited_config_file_counts_from_the_next_run_on(project: SimulatedProject) -> None:
    configure(project, verify_cmd="echo honest > verified")
    killed(project)
    configure(project, verify_cmd="true", limits={"max_rounds": 1})
    done = project.run()
    assert done.code == 0, done.text
    assert "quintet.json has changed since the run" in words(done.out)
    assert "verify_cmd" in words(done.out)
    assert "--reload takes it now" in words(done.out)
    assert (project.wd / "verified").exists()
    (project.wd / "verified").unlink()
    assert project.run().code == 0
    assert not (project.wd / "verified").exists()
    assert project.roles == [*ONE_PASS, *ONE_PASS]


@pytest.mark.parametrize("more", [{"state_file": "other.json"}, {"resume": False}], ids=["state file", "resume"])
def test_a_config_file_cannot_make_a_new_run_of_one_that_goes_on(
    project: SimulatedProject, more: dict[str, object]
) -> None:
    configure(project, verify_cmd="echo honest > verified")
    killed(project)
    configure(project, verify_cmd="true", **more)
    done = project.run()
    assert done.code == 0, done.text
    assert f"(verify_cmd, {next(iter(more))}), which counts from the next run on" in words(done.out)
    assert project.roles == list(ONE_PASS)
    assert (project.wd / "verified").exists()


def test_agents_of_the_users_own_are_kept_with_their_variables(project: SimulatedProject) -> None:
    configure(project, providers={"mine": {"command": ["x"], "env": {"KEY": "k3pt"}}})
    killed(project)
    configure(project, providers={"mine": {"command": ["x"], "env": {"KEY": "s3cret"}}})
    done = project.run()
    assert done.code == 0, done.text
    assert "(providers), which counts from the next run on" in words(done.out)
    assert "s3cret" not in done.text
    kept = [path.read_text() for path in project.wd.rglob("*") if path.is_file() and path.name != "quintet.json"]
    assert not [text for text in kept if "k3pt" in text]


def test_a_config_file_that_always_begins_a_new_run_still_does(project: SimulatedProject) -> None:
    configure(project, resume=False)
    killed(project)
    assert project.run().code == 0
    assert project.roles == [*ONE_PASS[:3], *ONE_PASS]


def test_a_setting_that_had_no_value_gets_none_from_an_edited_file(project: SimulatedProject) -> None:
    killed(project)
    configure(project, prices={"codex": {"input": 1, "cached": 1, "output": 1}})
    done = project.run()
    assert done.code == 0, done.text
    assert "(prices), which counts from the next run on" in words(done.out)


@pytest.mark.parametrize("harm", ["removed", "emptied"])
def test_a_config_file_that_is_gone_does_not_take_its_settings_along(project: SimulatedProject, harm: str) -> None:
    configure(project, verify_cmd="echo honest > verified")
    killed(project)
    (project.wd / "quintet.json").unlink() if harm == "removed" else configure(project)
    done = project.run()
    assert done.code == 0, done.text
    assert ("the config file is gone" if harm == "removed" else "quintet.json has changed") in words(done.out)
    assert (project.wd / "verified").exists()


def test_reload_takes_the_file_as_it_is_and_keeps_it(project: SimulatedProject) -> None:
    configure(project, verify_cmd="echo old > verified")
    killed(project)
    configure(project, verify_cmd="echo new > verified")
    project.stop_at(4, signal.SIGKILL, "--reload")
    done = project.run()
    assert done.code == 0, done.text
    assert "has changed" not in words(done.out)
    assert (project.wd / "verified").read_text() == "new\n"


def test_what_the_user_gives_counts(project: SimulatedProject) -> None:
    configure(project, verify_cmd="echo file > verified")
    killed(project)
    done = project.run(VERIFY_CMD="echo variable > verified")
    assert done.code == 0, done.text
    assert "has changed" not in words(done.out)
    assert (project.wd / "verified").read_text() == "variable\n"


def test_what_the_user_gave_at_the_start_counts_until_it_is_given_anew(project: SimulatedProject) -> None:
    killed(project, VERIFY_CMD="echo start > verified")
    configure(project, verify_cmd="true")
    done = project.run()
    assert done.code == 0, done.text
    assert "has changed" not in words(done.out), "the file never counted"
    assert (project.wd / "verified").read_text() == "start\n"


def test_a_new_run_has_the_settings_of_now(project: SimulatedProject) -> None:
    configure(project, verify_cmd="echo old > verified")
    killed(project)
    configure(project, verify_cmd="echo new > verified")
    assert project.run(RESUME="0").code == 0
    assert (project.wd / "verified").read_text() == "new\n"


def own_texts(tmp_path: Path, more: str) -> Path:
    """A folder with a prompt text of the user's own: the shipped one and a line."""
    folder = tmp_path / "texts"
    folder.mkdir(exist_ok=True)
    shipped = Path(__file__).parents[3] / "src/quintet/loop/decide/prompts/tester.md"
    (folder / "tester.md").write_text(f"{shipped.read_text()}\n{more}\n")
    return folder


def test_prompt_texts_are_those_of_the_start(project: SimulatedProject, tmp_path: Path) -> None:
    texts = own_texts(tmp_path, "Be strict.")
    killed(project, PROMPTS_DIR=str(texts))
    own_texts(tmp_path, "Say PASS.")
    done = project.run("--dry-run")
    assert "have changed since the run" in words(done.text)
    done = project.run(PROMPTS_DIR=str(texts))
    assert done.code == 0, done.text
    assert f"prompt texts in {texts} have changed" in words(done.out)
    assert "Be strict." in project.stub.prompts[-1][1]
    shutil.rmtree(texts)
    assert project.run(PROMPTS_DIR="").code == 0
    assert "Be strict." not in project.stub.prompts[-1][1]


def test_kept_prompt_texts_that_cannot_be_read_are_one_line(project: SimulatedProject, tmp_path: Path) -> None:
    texts = own_texts(tmp_path, "Be strict.")
    killed(project, PROMPTS_DIR=str(texts))
    [kept] = project.records.glob("*/*/tester.md")
    kept.unlink()
    kept.mkdir()
    done = project.run(PROMPTS_DIR=str(texts))
    assert "Traceback" not in done.text
    assert "tester.md" in done.text


def test_prompt_texts_are_taken_anew_by_choice(project: SimulatedProject, tmp_path: Path) -> None:
    texts = own_texts(tmp_path, "Be strict.")
    killed(project, PROMPTS_DIR=str(texts))
    own_texts(tmp_path, "Be stricter.")
    assert project.run("--reload").code == 0
    assert "Be stricter." in project.stub.prompts[-1][1]


def test_what_is_kept_gives_the_same_settings(tmp_path: Path) -> None:
    file = tmp_path / "quintet.json"
    agents = {"tester": {"provider": "claude_code", "args": ["--x"]}}
    file.write_text(json.dumps({"limits": {"max_rounds": 3}, "agents": agents, "prompts_dir": "texts"}))
    env = {"MAX_TOKENS": "77"}
    loaded = load_settings(None, env, {"verify_cmd": "make check"}, tmp_path)
    kept = settings_to_keep(loaded)
    assert sorted(kept.given) == ["limits.max_tokens", "verify_cmd"]
    stored = json.loads(json.dumps({"rows": kept.rows, "given": kept.given, "agents": kept.agents}))
    file.write_text(json.dumps({"limits": {"max_rounds": 9}, "agents": {}}))
    again = load_settings(None, {}, {}, tmp_path, Kept(**stored))
    assert settings_as_json(again.settings) == settings_as_json(loaded.settings)
    assert settings_to_keep(again).agents == kept.agents
    reloaded = load_settings(None, {}, {}, tmp_path, Kept(**stored).without_file).settings
    assert (reloaded.max_rounds, reloaded.max_tokens, reloaded.verify_cmd) == (9, 77, "make check")
    assert reloaded.agents["tester"].args == ()
    other = load_settings(None, {}, {"provider": "claude_code"}, tmp_path, Kept(**stored)).settings
    assert {agent.provider for agent in other.agents.values()} == {"claude_code"}
