"""The HTTP application: its routes, its error answers, and what starts and ends with it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from fastapi import APIRouter, FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.status import HTTP_405_METHOD_NOT_ALLOWED

from quintet import __version__
from quintet.errors import QuintetError
from quintet.server.http.access import AccessGuard
from quintet.server.http.routes import router
from quintet.server.refusals import Refusal
from quintet.server.terminal.session_manager import SessionManager
from quintet.server.tmux.errors import TmuxError


class PageRoutes(Protocol):
    """Routes that show runs, given by whoever starts the server: this room knows nothing of runs."""

    @property
    def router(self) -> APIRouter: ...

    @property
    def open_paths(self) -> frozenset[str]:
        """Paths that hold no secret and need no token."""

    async def watch(self, tell: Callable[..., None], watched: Callable[[], bool]) -> None:
        """Add events while the server runs."""


def create_app(
    make_sessions: Callable[[], SessionManager],
    *,
    token: str = "",
    hosts: Iterable[str] = (),
    any_address: bool = False,
    pages: PageRoutes | None = None,
    open_paths: frozenset[str] = frozenset(),
    read_only: bool = False,
    control_token: str = "",
) -> FastAPI:
    """An application; its sessions are found on the event loop that serves it."""
    app = FastAPI(
        title="Quintet terminal server",
        description="Agent CLIs in tmux panes. The API of CLI Agent Orchestrator 2.5.4, and an event stream.",
        version=__version__,
        docs_url=None,  # its pages would load scripts from elsewhere
        redoc_url=None,
        lifespan=partial(_lifespan, make_sessions, pages),
    )
    # its own routes, not included ones: of these it makes another copy at each start, and looks them up twice a request
    app.router.routes += [*router.routes, *(pages.router.routes if pages is not None else ())]
    app.add_exception_handler(QuintetError, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_middleware(
        AccessGuard,
        token=token,
        hosts=tuple(hosts),
        any_address=any_address,
        open_paths=open_paths | (pages.open_paths if pages is not None else frozenset()),
        read_only=read_only,
        control_token=control_token,
    )
    return app


@asynccontextmanager
async def _lifespan(
    make_sessions: Callable[[], SessionManager], pages: PageRoutes | None, app: FastAPI
) -> AsyncIterator[None]:
    sessions = app.state.sessions = make_sessions()
    await sessions.open()
    watching = asyncio.create_task(pages.watch(sessions.events.add, lambda: sessions.events.watched)) if pages else None
    yield
    if watching is not None:
        watching.cancel()
    await sessions.close()


async def _refused(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - FastAPI's signature
    """A refusal has its own status. A failure of tmux is our fault, anything else (a missing CLI) the user's."""
    status = error.status if isinstance(error, Refusal) else 500 if isinstance(error, TmuxError) else 400
    return JSONResponse({"detail": str(error)}, status)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    """Starlette's own refusals; `Allow` has all methods of a path, where Starlette names those of the first route."""
    if not isinstance(error, HTTPException):
        raise error
    headers = dict(error.headers or {})
    if error.status_code == HTTP_405_METHOD_NOT_ALLOWED:
        path = request.url.path
        routes = [route for route in router.routes if isinstance(route, APIRoute) and route.path_regex.match(path)]
        headers = {"Allow": ", ".join(sorted({method for route in routes for method in route.methods or ()}))}
    return JSONResponse({"detail": error.detail}, error.status_code, headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001
    """FastAPI's answer, without the value: it may be a prompt of megabytes."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    details = [{key: value for key, value in one.items() if key not in ("input", "ctx", "url")} for one in found]
    return JSONResponse({"detail": jsonable_encoder(details)}, 422)
