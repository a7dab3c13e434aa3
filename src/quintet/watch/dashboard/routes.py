"""The routes of the dashboard: its page, and the runs as JSON. They only read; a server includes them."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import JSONResponse

from quintet.errors import QuintetError
from quintet.loop.journal import Event
from quintet.loop.record.lock import is_locked
from quintet.program import program
from quintet.watch.dashboard.run_json import diff_json, handoff_json, run_json, run_line_json
from quintet.watch.runs.diff import Diff, diff_of
from quintet.watch.runs.folders import (
    JournalTail,
    follow,
    is_run_id,
    project_run_folders,
    run_folders,
    with_process_status,
)
from quintet.watch.runs.model import Run
from quintet.watch.runs.summary import task_title
from quintet.watch.runs.timeline import SvgElement, draw_timeline
from quintet.workspace.worktrees import trees_of

LATEST: Final = "latest"
LOOK_SECONDS: Final = 0.5
"""how often the journals are checked while a page is open"""
LOOKS_PER_LISTING: Final = 4
"""after so many checks they are looked for anew: to find them takes five times as long as to check them"""
MOST_RUNS: Final = 50
_MOST_EVENTS: Final = 200
"""of a run, in memory; the page shows fewer"""
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # xterm.js writes the colours of its cells as styles
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_FILES: Final = {
    "/": "dashboard/static/index.html",
    "/queue": "dashboard/static/queue.html",
    "/static/common.js": "dashboard/static/common.js",
    "/static/dashboard.css": "dashboard/static/dashboard.css",
    "/static/dashboard.js": "dashboard/static/dashboard.js",
    "/static/queue.js": "dashboard/static/queue.js",
    "/static/icon.svg": "dashboard/static/icon.svg",
    "/static/timeline.css": "runs/timeline.css",
    "/static/diff.css": "runs/diff.css",
    "/static/xterm.js": "dashboard/static/vendor/xterm/xterm.js",
    "/static/xterm.css": "dashboard/static/vendor/xterm/xterm.css",
}
"""by path, the files of the page below `quintet.watch`"""
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class TaskRun(Protocol):
    """Where the run of a task of the queue can be read."""

    @property
    def run(self) -> str: ...

    @property
    def folder(self) -> Path: ...

    @property
    def machine(self) -> str:
        """Who has the run, where the folder is only a copy; empty where it is the run's own."""

    @property
    def is_running(self) -> bool: ...


class QueueView(Protocol):
    """The queue, given by whoever starts the server: this room knows nothing of it."""

    def state(self) -> dict[str, Any]:
        """Its tasks and machines as JSON."""

    def place_of(self, task_id: str) -> TaskRun | None:
        """Where the run of a task can be read; None where it cannot."""


@dataclass
class _FollowedRun:
    """A run whose journal is read as it grows."""

    folder: Path
    tail: JournalTail
    place: TaskRun | None = None
    """where it was found, if it is a copy of one on another machine"""
    events: list[Event] = field(default_factory=list)
    title: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """the routes run in threads"""

    def read(self) -> Run:
        with self._lock:
            self.events = [*self.events, *self.tail.read_new()][-_MOST_EVENTS:]
            run = (
                self.tail.run
                if self.place and self.place.is_running
                else with_process_status(self.folder, self.tail.run)
            )
            if self.place:
                run = replace(run, terminals={}, resumable=False)
            self.title = self.title or task_title(self.folder, run.id)
            return run


class DashboardRoutes:
    """Serves the page and the runs of some projects. It reads their folders and changes nothing."""

    can_act = False
    """whether people can tell a run something from the page"""
    open_paths: Final = frozenset(_FILES)
    """the paths of the page itself: a browser asks for them before it has the token"""

    def __init__(
        self,
        projects: Callable[[], Iterable[Path]],
        *,
        lasting: bool = True,
        open_queue: Callable[[], QueueView] | None = None,
    ) -> None:
        self._projects = projects
        self._open_queue = open_queue and cache(open_queue)
        """loads what the queue needs, when somebody looks at it"""
        self._lasting = lasting
        """whether the server goes on after a run has ended"""
        self._followed: dict[Path, _FollowedRun] = {}
        self._of_tasks: dict[str, Path] = {}
        """the folders of runs that somebody has come to from the queue"""
        self.router = APIRouter()
        for path, name in _FILES.items():
            self.router.add_api_route(path, partial(_file, name), methods=["GET"], include_in_schema=False)
        self.router.add_api_route("/watch/runs", self.runs, methods=["GET"])
        self.router.add_api_route("/watch/runs/{run_id}", self.run, methods=["GET"])
        self.router.add_api_route("/watch/runs/{run_id}/timeline", self.timeline, methods=["GET"], response_model=None)
        self.router.add_api_route("/watch/runs/{run_id}/diff", self.diff, methods=["GET"])
        self.router.add_api_route("/watch/runs/{run_id}/handoffs/{number}", self.handoff, methods=["GET"])

        self.router.add_api_route("/watch/queue", self.queue, methods=["GET"])
        self.router.add_api_route("/watch/queue/{task_id}", self.task, methods=["GET"])

    async def watch(self, send: Callable[..., None], watched: Callable[[], bool]) -> None:
        """Send an event for every journal that has grown, while a page is open."""
        journals = await asyncio.to_thread(self._newest_journals)
        sizes = await asyncio.to_thread(_sizes, journals)
        for number in itertools.count(1):
            await asyncio.sleep(LOOK_SECONDS)
            if not watched():
                continue
            if number % LOOKS_PER_LISTING == 0:
                journals = await asyncio.to_thread(self._newest_journals)
            found = await asyncio.to_thread(_sizes, journals)
            for name, size in found.items():
                if sizes.get(name) != size:
                    send("journal", run=name, size=size[0])
            sizes = found

    def runs(self) -> dict[str, Any]:
        """The runs of all projects, the newest first."""
        folders = self._folders()[:MOST_RUNS]
        rows = [run_line_json(followed.read(), followed.title) for followed in map(self._follow, folders)]
        projects = [str(project) for project in self._projects()]
        more = {"lasting": self._lasting, "program": program(), "control": self.can_act}
        return {"projects": projects, **more, "runs": rows}

    def run(self, run_id: str) -> dict[str, Any]:
        """One run; `latest` is the newest. `elsewhere` names the machine that has it, if it is not this one."""
        followed = self._follow(self.folder_of(run_id))
        elsewhere = followed.place.machine if followed.place else ""
        return run_json(followed.read(), followed.title, followed.events) | {"elsewhere": elsewhere}

    def queue(self) -> dict[str, Any]:
        """The tasks of the queue and its machines."""
        if self._open_queue is None:
            return {"note": f"This server shows runs only; the queue is on the page of {program()} dashboard."}
        try:
            return self._open_queue().state()
        except QuintetError as error:
            return {"note": str(error)}

    def task(self, task_id: str) -> dict[str, str]:
        """The run of a task, which can be asked for from now on as any other."""
        try:
            place = self._open_queue().place_of(task_id) if self._open_queue else None
        except QuintetError as error:
            raise HTTPException(404, str(error)) from None
        if place is None:
            raise HTTPException(404, "Nothing can be read yet of the run of this task.")
        followed = self._follow(place.folder)
        followed.place = place if place.machine else None
        self._of_tasks[place.run] = place.folder
        return {"run": place.run}

    def timeline(self, run_id: str) -> SvgElement:
        """The timeline of a run as it is now: nested elements, each with its name, its attributes and its children."""
        return draw_timeline(self._follow(self.folder_of(run_id)).read(), time.time())

    def diff(self, run_id: str) -> Response:
        """What a run has changed: files with their lines, as many as a page shows."""
        folder = self.folder_of(run_id)
        followed = self._follow(folder)
        if followed.place:
            return JSONResponse(
                diff_json(Diff(note=f"It is on {followed.place.machine}, and in the task's branch at the end."))
            )
        return JSONResponse(diff_json(diff_of(folder, followed.read())))

    def handoff(self, run_id: str, number: int) -> dict[str, Any]:
        """The texts of one handoff; the numbers begin with 0."""
        folder = self.folder_of(run_id)
        run = self._follow(folder).read()
        if not 0 <= number < len(run.handoffs):
            raise HTTPException(404, "There is no such handoff")
        return handoff_json(folder, run, run.handoffs[number])

    def _newest_journals(self) -> list[tuple[str, Path, Path]]:
        """The newest run of each work tree, its journal, and that tree; older journals do not grow."""
        trees = (tree for project in self._projects() for tree in trees_of(project))
        return [(folder.name, follow(folder).path, tree) for tree in trees for folder in run_folders(tree)[:1]]

    def _folders(self) -> list[Path]:
        found = [folder for project in self._projects() for folder in project_run_folders(project)]
        return sorted(found, key=lambda folder: folder.name, reverse=True)

    def folder_of(self, run_id: str) -> Path:
        """The folder of a run that the page shows."""
        folders = self._folders()
        if run_id == LATEST and folders:
            return folders[0]
        found = next((folder for folder in folders if folder.name == run_id and is_run_id(run_id)), None)
        found = found or self._of_tasks.get(run_id)
        if found is None:
            raise HTTPException(404, "There is no such run")
        return found

    def _follow(self, folder: Path) -> _FollowedRun:
        return self._followed.setdefault(folder, _FollowedRun(folder, follow(folder)))


def _sizes(journals: Iterable[tuple[str, Path, Path]]) -> dict[str, tuple[int, bool]]:
    """The size of each journal, and whether a run is at work there: a killed run writes nothing."""
    sizes = {}
    for name, journal, tree in journals:
        with contextlib.suppress(OSError):
            sizes[name] = (journal.stat().st_size, is_locked(tree))
    return sizes


def _file(name: str) -> Response:
    content = files("quintet.watch").joinpath(name).read_bytes()
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers=_HEADERS)
