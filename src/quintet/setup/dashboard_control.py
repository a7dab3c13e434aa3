"""The dashboard that can act: what people may tell a run from its page, beside all that the dashboard shows."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Body
from pydantic import BaseModel

from quintet.roles import BY_NAME
from quintet.server.http.access import CONTROL
from quintet.setup import people, stopping
from quintet.watch.dashboard.routes import DashboardRoutes, QueueView


class PageRequest(BaseModel):
    """What a person has chosen on the page."""

    action: Literal["approve", "reject", "note", "pause", "stop"]
    text: str = ""
    role: Literal["", *BY_NAME] = ""  # type: ignore[valid-type]
    step: str = ""
    """the step that the page shows as waiting: a page of yesterday may show another one than there is"""


class ControlRoutes(DashboardRoutes):
    """The dashboard's routes, and one that passes on what a person has chosen."""

    can_act = True

    def __init__(
        self, projects: Callable[[], Iterable[Path]], *, open_queue: Callable[[], QueueView] | None = None
    ) -> None:
        super().__init__(projects, open_queue=open_queue)
        self.router.add_api_route(f"{CONTROL}runs/{{run_id}}", self.act, methods=["POST"])

    def act(self, run_id: str, request: Annotated[PageRequest, Body()]) -> dict[str, list[str]]:
        """Do what was chosen; the answer is what a command would have printed."""
        folder = self.folder_of(run_id)
        wd, run, told = folder.parents[1], folder.name, list[str]()
        match request.action:
            case "approve":
                people.approve(wd, run, told.append, step=request.step)
            case "reject":
                people.reject(wd, run, request.text, told.append, step=request.step)
            case "note":
                people.leave_note(wd, run, request.text, request.role, told.append)
            case "pause":
                people.pause(wd, run, told.append)
            case "stop":
                stopping.stop(stopping.target_of_run(wd, run), told.append, keep_terminals=False)
        return {"told": told}
