"""The dashboard that can act: with the control token alone, from its own page alone, and only on what it shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from quintet.roles import ANALYST
from tests.eventually import eventually
from tests.stub.preloaded import start
from tests.stub.project import Project, finish, project_in


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with project_in(tmp_path) as made:
        yield made


@contextmanager
def dashboard(project: Project, *options: str) -> Iterator[tuple[str, str]]:
    """The address and the token of a dashboard that runs."""
    process = start(["dashboard", "--port", "0", *options], project.env, project.wd)
    project.started.append(process)
    assert process.stdout is not None
    line = process.stdout.readline()
    url, _, token = line.split()[-1].partition("/#token=")
    eventually(lambda: is_up(url), "the dashboard")
    yield url, token
    process.terminate()
    process.communicate()


def is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/").status_code == 200
    except httpx.TransportError:
        return False


def say(url: str, token: str, run: str, headers: dict[str, str] | None = None, **wish: str) -> tuple[int, Any]:
    sent = {"Authorization": f"Bearer {token}", **(headers or {})}
    answer = httpx.post(f"{url}/control/runs/{run}", json=wish, headers=sent)
    return answer.status_code, answer.json()


def waiting(project: Project) -> str:
    eventually(lambda: project.state_file.exists() and project.state.get("waiting"), "a run that waits")
    return str(project.state["run_id"])


def shown(url: str, token: str, run: str) -> dict[str, Any]:
    answer = httpx.get(f"{url}/watch/runs/{run}", headers={"Authorization": f"Bearer {token}"})
    found: dict[str, Any] = answer.json()
    return found


def test_approve_and_send_back_from_the_page(project: Project) -> None:
    run = project.start(APPROVE="spec")
    name = waiting(project)
    with dashboard(project, "--control") as (url, token):
        step = shown(url, token, name)["approval"]
        assert step == "approve-spec-0"
        code, told = say(url, token, name, action="reject", text="name the file", step=step)
        assert (code, told) == (
            200,
            {"told": [f"Sent the specification of {name} back to the analyst. The run goes on."]},
        )
        eventually(lambda: project.state.get("sent_back") == 1 and project.state.get("waiting"))
        assert say(url, token, name, action="note", text="mind the gap", role="programmer")[0] == 200
        code, told = say(url, token, name, action="approve", step=step)
        assert code == 400, "a page of yesterday shows another step"
        assert told == {"detail": f"{name} waits with something else by now: look at it once more"}
        assert say(url, token, name, action="approve", step="approve-spec-1")[0] == 200
    assert finish(run).code == 0
    assert any("mind the gap" in text for _, text in project.stub.prompts)
    role, text = project.stub.prompts[2]
    assert (role, "name the file" in text) == (ANALYST, True), "what is sent back is done again with the notes"


def test_pause_and_stop_from_the_page(project: Project) -> None:
    run = project.start(APPROVE="spec")
    name = waiting(project)
    with dashboard(project, "--control") as (url, token):
        assert say(url, token, name, action="pause")[0] == 200
        paused = finish(run)
        assert (paused.code, "paused by" in paused.text) == (6, True)
        again = project.start(APPROVE="spec")
        eventually(lambda: shown(url, token, name)["status"] == "RUNNING")
        assert say(url, token, name, action="stop")[0] == 200
        assert finish(again).code != 0
        code, told = say(url, token, name, action="pause")
        assert (code, "is not at work" in told["detail"]) == (400, True)


def test_only_the_control_token_and_only_the_own_page_can_act(project: Project) -> None:
    run = project.start(APPROVE="spec")
    name = waiting(project)
    with dashboard(project) as (url, reading):
        assert say(url, reading, name, action="approve") == (405, {"detail": "This server is read-only"})
    with dashboard(project, "--control") as (url, token):
        assert token != reading
        assert "id" not in shown(url, reading, name), "a token counts until its dashboard ends"
        assert say(url, reading, name, action="approve")[0] == 401
        assert say(url, token, name, {"Origin": "http://elsewhere.example"}, action="approve")[0] == 403
        assert say(url, token, "no-such-run", action="approve")[0] == 404
        assert say(url, token, name, action="dance")[0] == 422
        assert say(url, token, name, action="note", text="x", role="nobody")[0] == 422
        other = httpx.post(
            f"{url}/terminals/abcd1234/input", params={"message": "x"}, headers={"Authorization": f"Bearer {token}"}
        )
        assert other.status_code == 405, "it tells runs something, and types into no terminal"
        assert project.state["waiting"] == "spec"
        assert say(url, token, name, action="approve")[0] == 200
    assert finish(run).code == 0
