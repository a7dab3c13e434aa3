"""A message that a paste would change goes through the agent's editor; where there is none, it is pasted after all."""

from pathlib import Path
from typing import ClassVar

import pytest

from quintet.providers import editor
from quintet.providers.base import Launch, LaunchPlan
from quintet.providers.scripted.provider import ScriptedProvider
from quintet.server.terminal import composer
from tests.server.rig import Rig

MESSAGE = "one\ttab"


class Editing(ScriptedProvider):
    """A scripted agent that is taken for one with an editor."""

    key: ClassVar[str] = "C-g"
    """which the agent does not know"""

    def launch(self, launch: Launch) -> LaunchPlan:
        plan = super().launch(launch)
        return LaunchPlan(plan.argv, plan.env, {editor.SCRIPT: editor.script(launch.folder, launch.env)})

    def editor_key(self, folder: Path, message: str) -> str | None:
        return self.key if "\t" in message and editor.is_usable(folder) else None


@pytest.fixture(autouse=True)
def agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composer, "EDITOR_SECONDS", 0.3)
    monkeypatch.setattr("quintet.providers.scripted.provider.PROVIDER", Editing())


def test_an_agent_that_opens_no_editor_gets_a_paste(rig: Rig) -> None:
    target = rig.root / "prompt.txt"
    terminal = rig.terminal([[{"save_prompt": str(target)}, {"reply": "ok {turn}"}]] * 2)
    for number in (1, 2):
        assert rig.ask(terminal, f"{MESSAGE} {number}") == f"ok {number}"
        assert target.read_text() == f"{MESSAGE} {number}"
    (withdrawn,) = rig.state_folder.root.rglob("editor.withdrawn")
    assert not (withdrawn.parent / editor.INPUT).exists(), "what was typed does not stay"


def test_what_the_editor_has_fetched_is_not_pasted_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor, "is_taken", lambda _: True)
    monkeypatch.setattr(Editing, "key", "x")
    target = rig.root / "prompt.txt"
    terminal = rig.terminal([[{"save_prompt": str(target)}, {"reply": "ok"}]])
    rig.send(terminal, MESSAGE)
    rig.eventually(target.exists, "the prompt")
    assert target.read_text() == "x"
